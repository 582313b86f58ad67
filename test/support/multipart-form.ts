/** A request in the form of the GraphQL multipart request specification, with its file, if it has one, in `$file`. */
export function multipartForm(
  query: string,
  variables: Readonly<Record<string, unknown>>,
  file?: { readonly bytes: Blob | Uint8Array<ArrayBuffer> | string; readonly name: string },
): FormData {
  const form = new FormData();
  form.set('operations', JSON.stringify({ query, variables: { ...variables, file: null } }));
  form.set('map', JSON.stringify({ 0: ['variables.file'] }));
  if (file !== undefined) form.set('0', new Blob([file.bytes]), file.name);
  return form;
}
