/** Words in names of attributes, outputs and types whose values are taken for secrets, marked or not. */
const SECRET_WORDS = [
  'password',
  'passphrase',
  'passwd',
  'secret',
  'token',
  'credential',
  'private',
  'apikey',
  'accesskey',
  'cert',
  'kubeconfig',
  'userdata',
  'connectionstring',
  'content',
  'rendered',
  'salt',
];

/**
 * Whether an attribute, an output or a resource type of this name is likely to hold secrets, marked or not: old versions of Terraform
 * mark little.
 */
export function soundsSecret(name: string): boolean {
  const letters = name.toLowerCase().replaceAll('_', '').replaceAll('-', '');
  return SECRET_WORDS.some((word) => letters.includes(word));
}
