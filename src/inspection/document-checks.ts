import { createHash } from 'node:crypto';
import type { ArchivedVersion, ArchiveManifest } from '../archive/model.ts';
import { clip } from '../base/clip.ts';
import { canonicalUuid } from '../base/uuid.ts';
import { readStateDocument } from '../terraform/document.ts';
import { StateHistoryReader } from '../terraform/history-reader.ts';
import type { Projection } from '../terraform/projection.ts';
import { RefusedDocumentError, rawStateOf, refusing } from './errors.ts';
import type { RowFileWriter } from './row-file.ts';
import { addOutputRow } from './spooled-rows.ts';
import { findDoubtfulRows, type Storage } from './storage.ts';
import type { WarningCode, WarningCollector } from './warnings.ts';

/** An address in a warning is cut to this many characters. */
const MAX_ADDRESS = 200;

/** Checks that Kilolock can hold each raw state of an archive, as PostgreSQL will keep it. */
export class DocumentChecks {
  readonly #manifest: ArchiveManifest;
  readonly #storage: Storage;
  readonly #warnings: WarningCollector;
  readonly #outputRows: RowFileWriter | null;
  readonly #reader = new StateHistoryReader('terraform');
  readonly #normalised = new Map<bigint, string>();
  #outputs = 0;
  #managedInstances = 0;
  #afterCurrent = 0;

  /** @param outputRows where the rows of `outputs` go; null: nowhere. */
  constructor(
    manifest: ArchiveManifest,
    storage: Storage,
    warnings: WarningCollector,
    outputRows: RowFileWriter | null,
  ) {
    this.#manifest = manifest;
    this.#storage = storage;
    this.#warnings = warnings;
    this.#outputRows = outputRows;
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

  /**
   * Checks the next raw state, in serial order, and gives the rows it amounts to.
   *
   * @throws RefusedDocumentError naming the serial and the place in the document. After it nothing more can be checked.
   */
  async check({ serial, id }: ArchivedVersion, bytes: Buffer): Promise<Projection> {
    const projection = await this.#readAsKept(serial, bytes);
    const { document } = projection;
    const doubtful = findDoubtfulRows(projection);
    const fault = doubtful && (await this.#storage.faultOf(doubtful));
    if (fault) throw new RefusedDocumentError(rawStateOf(serial), fault);
    for (const output of document.outputs()) {
      if (this.#outputRows !== null) addOutputRow(this.#outputRows, { versionId: id, ...output });
      this.#outputs += 1;
    }
    const { currentSerial } = this.#manifest.state;
    if (serial > currentSerial) this.#afterCurrent += 1;
    if (serial === currentSerial) this.#managedInstances = document.managedInstances;
    this.#warnOf(serial, projection);
    return projection;
  }

  /** The next version is not compared with the one before, whose bytes may change from now on. */
  forgetFormer(): void {
    this.#reader.forget();
  }

  /** To be called once, after the last version. */
  finish(): void {
    if (this.#normalised.size > 0) {
      this.#warnings.add(
        'RAW_STATES_NORMALISED',
        `${this.#normalised.size} raw states are spelled otherwise than PostgreSQL's jsonb gives them out; their contents are kept in its spelling, so that the history's digest is another than the archive's.`,
      );
    }
    if (this.#afterCurrent > 0) {
      this.#warnings.add(
        'CURRENT_IS_NOT_LAST',
        `The current version is serial ${this.#manifest.state.currentSerial}, and ${this.#afterCurrent} versions have higher serials; the open resource rows are those of the current version.`,
      );
    }
  }

  /** The version as PostgreSQL will keep it, which is what its rows are made of. */
  async #readAsKept(serial: bigint, bytes: Buffer): Promise<Projection> {
    // The proof before the commit keeps an archive honest that says so.
    if (this.#manifest.rawStateText === 'jsonb') return this.#read(serial, bytes);
    refusing(rawStateOf(serial), () => readStateDocument(bytes));
    const kept = await this.#storage.jsonbText(bytes);
    if (kept === null) return this.#read(serial, bytes);
    if (!(kept instanceof Uint8Array)) throw new RefusedDocumentError(rawStateOf(serial), kept);
    const text = Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength);
    this.#normalised.set(serial, createHash('sha256').update(text).digest('hex'));
    return this.#read(serial, text, ', as PostgreSQL spells it,');
  }

  #read(serial: bigint, bytes: Buffer, spelling = ''): Projection {
    return refusing(rawStateOf(serial, spelling), () => this.#reader.read(bytes));
  }

  #warnOf(serial: bigint, projection: Projection): void {
    const { document } = projection;
    if (document.serial !== serial) {
      this.#warn(serial, 'SERIAL_MISMATCH', `the document says serial ${document.serial}; both are kept.`);
    }
    if (!this.#isOwnLineage(document.lineage)) {
      this.#warn(serial, 'LINEAGE_MISMATCH', "the document's lineage is not the state's; both are kept.");
    }
    for (const { address, isDeposed, current } of projection.sharedAddresses()) {
      const name = clip(address, MAX_ADDRESS);
      if (isDeposed) {
        const what =
          current === 0
            ? 'has a deposed object and no current one; as in Kilolock, it stands in `resources` like a current one. The raw state tells them apart.'
            : 'has a deposed object beside its current one; as in Kilolock, the one written later stands in `resources`. The raw state keeps both.';
        this.#warn(serial, 'DEPOSED_INSTANCE', `${name} ${what}`);
      }
      if (current > 1) {
        this.#warn(
          serial,
          'ADDRESS_REPEATED',
          `${name} is the address of several instances; as in Kilolock, the one written last stands in \`resources\`. The raw state keeps all.`,
        );
      }
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
