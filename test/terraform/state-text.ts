/** Text of a state with one instance, built from raw JSON so that nothing is re-spelled. */
export function stateText(instance: string, rest = ''): string {
  return `{"version": 4, "serial": 7, "lineage": "", "resources": [${resourceText(instance)}]${rest}}`;
}

/** Text of a resource `aws_instance.web` around the instances given as raw JSON. */
export function resourceText(...instances: string[]): string {
  return `{"mode": "managed", "type": "aws_instance", "name": "web", "provider": "p", "instances": [${instances.join(', ')}]}`;
}
