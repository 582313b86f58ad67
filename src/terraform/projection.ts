import { attributesHash } from './attributes-hash.ts';
import type { ResourceInstance, StateDocument } from './document.ts';
import { goJson } from './go-json.ts';
import { TerraformLayout } from './terraform-layout.ts';

export { type AttributesHashFields, attributesHash } from './attributes-hash.ts';

/**
 * Which spelling of `attributes` and `sensitive_attributes` is hashed (data model 3.6 and 3.9):
 *
 * - `as-written`: the bytes of the document, as Kilolock does with an uploaded one;
 * - `terraform`: the bytes Terraform would have uploaded, recovered from jsonb's text.
 *
 * For a document as Terraform writes it, both give the same hashes.
 */
export type AttributeLayout = 'as-written' | 'terraform';

/** An instance as a row of `resources`. Its `attributes` stay the document's bytes under either layout. */
export interface ProjectedResource extends ResourceInstance {
  /** Lowercase hex SHA-256 (data model 3.5). */
  readonly attributesHash: string;
  /** Text for the `dependencies_raw` column: the list in Go's compact JSON, order kept. */
  readonly dependenciesRaw: string;
}

/** The rows of one version. */
export interface Projection {
  /**
   * By address, in document order. Of several instances with one address the last counts, so that a deposed
   * object hides the current one, as it does in Kilolock (data model 3.1).
   */
  readonly resources: Map<string, ProjectedResource>;
  /** The addresses that have a deposed object, each once. */
  readonly deposedAddresses: string[];
  /** The addresses among those that have no current object. */
  readonly deposedAlone: ReadonlySet<string>;
  /** The addresses that several instances have that are not deposed, each once. */
  readonly repeatedAddresses: string[];
}

/** The resource rows of one version. For a whole history, {@link HistoryProjector} is much faster. */
export function projectResources(document: StateDocument, layout: AttributeLayout): Projection {
  return new HistoryProjector(layout).project(document);
}

/**
 * Projects one version after another of the same state. Most resources are the same from one version to the
 * next, and for them the layout `terraform` need not be worked out again: what is kept for that is two
 * hashes per address of the last version.
 */
export class HistoryProjector {
  readonly #hash: (fields: HashedResource) => string;
  #last = new Map<string, KnownHash>();
  #next = new Map<string, KnownHash>();

  constructor(layout: AttributeLayout) {
    this.#hash = layout === 'terraform' ? this.#terraformHash(new TerraformLayout()) : attributesHash;
  }

  /** @param wanted the addresses to project; all of them when absent. */
  project(document: StateDocument, wanted?: { has(address: string): boolean }): Projection {
    const resources = new Map<string, ProjectedResource>();
    const deposed = new Set<string>();
    const repeated = new Set<string>();
    /** Of the addresses that came up more than once, those that a current object has. */
    const current = new Set<string>();
    for (const instance of document.instances()) {
      const { address } = instance;
      if (wanted !== undefined && !wanted.has(address)) continue;
      const earlier = resources.get(address);
      if (earlier !== undefined) {
        if (!earlier.deposed) current.add(address);
        if (!instance.deposed && current.has(address)) repeated.add(address);
      }
      const fields = { ...instance, dependenciesRaw: goJson(instance.dependencies) };
      resources.set(address, { ...fields, attributesHash: this.#hash(fields) });
      if (instance.deposed) deposed.add(address);
    }
    const deposedAlone = new Set(
      [...deposed].filter((address) => !current.has(address) && resources.get(address)?.deposed === true),
    );
    this.#last = this.#next;
    this.#next = new Map();
    return { resources, deposedAddresses: [...deposed], deposedAlone, repeatedAddresses: [...repeated] };
  }

  #terraformHash(layout: TerraformLayout): (fields: HashedResource) => string {
    return (fields) => {
      const asWritten = attributesHash(fields);
      const known = this.#last.get(fields.address);
      const terraform =
        known?.asWritten === asWritten
          ? known.terraform
          : attributesHash(fields, (text, write) => layout.render(text, write));
      this.#next.set(fields.address, { asWritten, terraform });
      return terraform;
    };
  }
}

type HashedResource = Omit<ProjectedResource, 'attributesHash'>;

/** The hash of a resource as its document spells it, and of the same resource in Terraform's layout. */
interface KnownHash {
  readonly asWritten: string;
  readonly terraform: string;
}
