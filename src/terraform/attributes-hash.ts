import { createHash, type Hash, hash } from 'node:crypto';
import type { ResourceInstance } from './document.ts';
import { PieceWriter } from './piece-writer.ts';
import { TerraformLayout } from './terraform-layout.ts';

/**
 * Which spelling of `attributes` and `sensitive_attributes` is hashed (data model 3.6 and 3.9):
 *
 * - `as-written`: the bytes of the document, as Kilolock does with an uploaded one;
 * - `terraform`: the bytes Terraform would have uploaded, recovered from jsonb's text.
 *
 * For a document as Terraform writes it, both give the same hashes.
 */
export type AttributeLayout = 'as-written' | 'terraform';

const SEPARATOR = '\u001f';

/**
 * What `attributes_hash` covers (data model 3.5). Of attributes and sensitive paths it is the bytes that are hashed, not the
 * values; dependencies are hashed in Go's compact spelling, order kept.
 */
export type AttributesHashFields = Omit<ResourceInstance, 'address' | 'deposed' | 'place'>;

/** Computes the `attributes_hash` of resource rows: SHA-256 over eleven fields (data model 3.5). */
export class AttributesHasher {
  readonly #isAsWritten: boolean;
  /** Of what is too long for one piece. */
  #sha256: Hash | null = null;
  readonly #out = new PieceWriter((piece) => {
    this.#sha256 ??= createHash('sha256');
    this.#sha256.update(piece);
  });
  readonly #terraform = new TerraformLayout(this.#out);

  constructor(layout: AttributeLayout) {
    this.#isAsWritten = layout === 'as-written';
  }

  /** The hash as it is: a character of latin1 for each byte. */
  hash(fields: AttributesHashFields): string {
    const { mode, type, name, provider, modulePath, indexKind, indexValue, schemaVersion } = fields;
    const texts = [mode, type, name, provider, modulePath, indexKind, indexValue ?? '', schemaVersion];
    for (const text of texts) this.#out.text(`${text}${SEPARATOR}`);
    this.#json(fields.attributes);
    this.#out.text(SEPARATOR);
    this.#json(fields.sensitivePaths);
    this.#out.text(SEPARATOR);
    this.#terraform.compactStrings(fields.dependencies);
    const rest = this.#out.takeRest();
    // In one go where possible: a hash that is kept takes as long to make as to compute.
    const digest = this.#sha256?.update(rest).digest('binary') ?? hash('sha256', rest, 'binary');
    this.#sha256 = null;
    return digest;
  }

  #json(text: Buffer): void {
    if (this.#isAsWritten) this.#out.copy(text);
    else this.#terraform.render(text);
  }
}
