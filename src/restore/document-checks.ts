import { createHash } from 'node:crypto';
import { ArchiveError } from '../archive/errors.ts';
import type { ArchivedVersion, ArchiveManifest } from '../archive/model.ts';
import { clip } from '../base/clip.ts';
import type { StateDocument } from '../terraform/document.ts';
import { StateHistoryReader } from '../terraform/history-reader.ts';
import type { Projection } from '../terraform/projection.ts';
import type { CarriedSpans } from './carried-spans.ts';
import { RestoreRefusedError } from './errors.ts';
import type { WarningCode, WarningCollector } from './report.ts';
import { SpanAgreement } from './span-agreement.ts';
import { SpanDerivation } from './span-derivation.ts';
import type { StorageTrial } from './storage-trial.ts';
import { type KeptVersion, rawStateOf, readKeptVersion } from './supported-document.ts';

/** An address in a warning is cut to this many characters. */
const MAX_ADDRESS = 200;

/** Checks that Kilolock can hold each raw state of an archive, and settles its resource spans on the way. */
export class DocumentChecks {
  readonly #manifest: ArchiveManifest;
  readonly #carried: CarriedSpans;
  readonly #warnings: WarningCollector;
  readonly #trial: StorageTrial;
  readonly #reader = new StateHistoryReader('terraform');
  readonly #derivation: SpanDerivation;
  readonly #agreement: SpanAgreement;
  readonly #normalised = new Map<bigint, string>();
  readonly #foldedOutputs: bigint[] = [];
  #derivedSpans: SpanDerivation | null = null;
  #outputs = 0;
  #managedInstances = 0;
  #afterCurrent = 0;

  /**
   * @param carried the spans of the same archive, read beside the versions.
   * @param trial asks the database that is to hold them.
   */
  constructor(
    manifest: ArchiveManifest,
    carried: CarriedSpans,
    warnings: WarningCollector,
    trial: StorageTrial,
  ) {
    this.#trial = trial;
    this.#manifest = manifest;
    this.#carried = carried;
    this.#warnings = warnings;
    this.#derivation = new SpanDerivation(manifest.state.currentSerial);
    this.#agreement = new SpanAgreement(manifest.state.currentSerial);
  }

  /** How many outputs the documents have, over all versions. */
  get outputs(): number {
    return this.#outputs;
  }

  /** Managed resource instances of the current version. */
  get managedInstances(): number {
    return this.#managedInstances;
  }

  /**
   * The digests of the raw states that jsonb will keep in another spelling, as it will keep them, by serial. Archives of
   * this project have none: their raw states are jsonb's own text.
   */
  get normalised(): ReadonlyMap<bigint, string> {
    return this.#normalised;
  }

  /** The serials of versions whose outputs are under keys in another case, so that jsonb does not find them. */
  get foldedOutputs(): readonly bigint[] {
    return this.#foldedOutputs;
  }

  /** The spans derived from the raw states, when they have to stand in for those carried; known after `finish`. */
  get derivedSpans(): SpanDerivation | null {
    return this.#derivedSpans;
  }

  /**
   * Checks the next raw state, in serial order.
   *
   * @returns the refusal UNSUPPORTED_STATE_DOCUMENT, naming the serial and the place in the document; null when there is
   *   none. After a refusal nothing more can be checked.
   */
  async check({ serial }: ArchivedVersion, bytes: Buffer): Promise<RestoreRefusedError | null> {
    let kept: KeptVersion;
    try {
      kept = readKeptVersion(serial, bytes, this.#reader);
    } catch (error) {
      if (error instanceof RestoreRefusedError) return error;
      throw error;
    }
    const { document, projection } = kept;
    if (kept.isNormalised) {
      this.#normalised.set(serial, createHash('sha256').update(document.bytes).digest('hex'));
    }
    if (document.hasFoldedOutputs) this.#foldedOutputs.push(serial);
    const refusal = await this.#trial.refusalOf(rawStateOf(serial), document, projection);
    if (refusal !== null) return refusal;
    this.#derivation.apply(serial, projection);
    await this.#compareWithCarried(serial, projection);
    this.#outputs += document.outputCount;
    const { currentSerial } = this.#manifest.state;
    if (serial > currentSerial) this.#afterCurrent += 1;
    if (serial === currentSerial) this.#managedInstances = document.managedInstances;
    this.#warnOf(serial, document, projection);
    return null;
  }

  /** To be called once, after the last version. */
  async finish(hasCarriedSpans: boolean): Promise<void> {
    this.#derivation.finish();
    if (this.#agreement.disagreement === null && (await this.#carried.hasMore())) {
      this.#agreement.disagree('a span begins after the last version');
    }
    const { counts, state } = this.#manifest;
    const disagreement = hasCarriedSpans ? this.#agreement.disagreement : 'the archive carries none';
    if (disagreement !== null && (counts.resources > 0 || this.#derivation.count > 0)) {
      this.#derivedSpans = this.#derivation;
      this.#warnings.add(
        'RESOURCE_SPANS_DERIVED',
        `The resource spans are derived from the raw states, each instance hashed as Terraform writes it: ${disagreement}.`,
      );
    } else if (this.#agreement.otherHashes > 0) {
      this.#warnings.add(
        'RESOURCE_HASHES_KEPT',
        `${this.#agreement.otherHashes} resource spans keep a hash of another spelling than Terraform's, as Kilolock recorded it.`,
      );
    }
    if (this.#normalised.size > 0) {
      this.#warnings.add(
        'RAW_STATES_NORMALISED',
        `${this.#normalised.size} raw states are spelled otherwise than PostgreSQL's jsonb gives them out; their contents are kept in its spelling, so that the history's digest is another than the archive's.`,
      );
    }
    if (this.#afterCurrent > 0) {
      this.#warnings.add(
        'CURRENT_IS_NOT_LAST',
        `The current version is serial ${state.currentSerial}, and ${this.#afterCurrent} versions have higher serials; the open resource rows are those of the current version.`,
      );
    }
  }

  async #compareWithCarried(serial: bigint, projection: Projection): Promise<void> {
    if (this.#agreement.disagreement !== null) return;
    try {
      const { begun, passedOver } = await this.#carried.take(serial);
      if (passedOver > 0) {
        this.#agreement.disagree(`${passedOver} spans before serial ${serial} begin at no version`);
      }
      this.#agreement.check(serial, begun, projection);
    } catch (error) {
      // The reading of the versions comes upon the same fault, and knows best how to name it.
      if (!(error instanceof ArchiveError)) throw error;
      this.#agreement.disagree('they cannot be read');
    }
  }

  #warnOf(serial: bigint, document: StateDocument, projection: Projection): void {
    if (document.serial !== serial) {
      this.#warn(serial, 'SERIAL_MISMATCH', `the document says serial ${document.serial}; both are kept.`);
    }
    if (!this.#isOwnLineage(document.lineage)) {
      this.#warn(serial, 'LINEAGE_MISMATCH', "the document's lineage is not the state's; both are kept.");
    }
    for (const address of projection.deposedAddresses) {
      const what = projection.deposedAlone.has(address)
        ? 'has a deposed object and no current one; as in Kilolock, it stands in `resources` like a current one. The raw state tells them apart.'
        : 'has a deposed object beside its current one; as in Kilolock, the one written later stands in `resources`. The raw state keeps both.';
      this.#warn(serial, 'DEPOSED_INSTANCE', `${clip(address, MAX_ADDRESS)} ${what}`);
    }
    for (const address of projection.repeatedAddresses) {
      this.#warn(
        serial,
        'ADDRESS_REPEATED',
        `${clip(address, MAX_ADDRESS)} is the address of several instances; as in Kilolock, the one written last stands in \`resources\`. The raw state keeps all.`,
      );
    }
  }

  /** An empty lineage is what a genesis document and some delta commits have (data model 2.4). */
  #isOwnLineage(lineage: string): boolean {
    const { state } = this.#manifest;
    return lineage === '' || state.lineage === null || canonicalUuid(lineage) === state.lineage;
  }

  #warn(serial: bigint, code: WarningCode, message: string): void {
    this.#warnings.add(code, `Serial ${serial}: ${message}`, serial);
  }
}

// PostgreSQL accepts a uuid in braces, in capitals and with other hyphens; the column holds it in one form.
function canonicalUuid(text: string): string {
  const digits = text.toLowerCase().replace(/[{}-]/g, '');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
