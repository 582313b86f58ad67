import type { Address } from './documents.ts';

/** The environment of a self-hosted Kilolock, whose states are addressed by their names alone. */
const SELF_HOSTED_ENVIRONMENT = 'env_000000000000';

/** What stands in the configuration of who uses a state, and the commands that follow. */
export function nextSteps({ name, workspaceId, environmentId }: Address): string {
  const scope = environmentId === SELF_HOSTED_ENVIRONMENT ? [] : [workspaceId, environmentId];
  const path = [...scope, ...name.split('/')].map(encodeURIComponent).join('/');
  return `Next, in the configuration that uses it, with the address of your Kilolock:

  terraform {
    backend "http" {
      address        = "https://KILOLOCK/v1/states/${path}"
      lock_address   = "https://KILOLOCK/v1/states/${path}"
      unlock_address = "https://KILOLOCK/v1/state-unlock/${path}"
      lock_method    = "LOCK"
      unlock_method  = "POST"
    }
  }

Then: terraform init -reconfigure, and terraform plan, which should find nothing to change.`;
}
