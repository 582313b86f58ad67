import type { GraphQLResolveInfo, GraphQLScalarType, GraphQLScalarTypeConfig } from 'graphql';
import type { StateParent, StateArchiveParent, VersionParent, TagParent, OperationParent, FileParent } from './parents.ts';
import type { VersionContents } from '../history/versions.ts';
import type { RestoreReport } from '../restore/report.ts';
import type { GraphqlContext } from './context.ts';
export type Maybe<T> = T | null;
export type InputMaybe<T> = T | null | undefined;
export type Omit<T, K extends keyof T> = Pick<T, Exclude<keyof T, K>>;
export type RequireFields<T, K extends keyof T> = Omit<T, K> & { [P in K]-?: NonNullable<T[P]> };
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string; output: string; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  /** A 64-bit integer written as a decimal string ("9007199254740993"), so that no reader rounds it. */
  BigInt: { input: bigint; output: bigint; }
  /**
   * An instant in UTC, RFC 3339 with exactly six fractional digits: "2026-03-02T10:00:00.000118Z". Inputs may have fewer
   * fractional digits, or none.
   */
  DateTime: { input: string; output: string; }
  /** A SHA-256 digest in lowercase hex, 64 characters. */
  Sha256: { input: string; output: string; }
  /** A file sent with the request, as the GraphQL multipart request specification describes; one per request. */
  Upload: { input: Promise<import('../http/upload.ts').FileUpload>; output: Promise<import('../http/upload.ts').FileUpload>; }
  _FieldSet: { input: string; output: string; }
};

/** Which operation to cancel. */
export type CancelStateArchiveOperationInput = {
  /** The operation's id. */
  readonly id: Scalars['ID']['input'];
  /** The environment of the operation; your credential's own if absent. */
  readonly scope?: InputMaybe<StateScopeInput>;
};

/** The result of cancelling an operation. */
export type CancelStateArchiveOperationPayload = {
  /** The operation as it is now; null when there is none, or none you may see. */
  readonly operation: Maybe<StateArchiveOperation>;
  /** Problems for the caller to fix; empty when there are none. */
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

/** What to export. */
export type ExportStateArchiveInput = {
  /** Whether whoever has an encrypted archive and no key for it may read the digest of its history. */
  readonly discloseHistoryDigest: Scalars['Boolean']['input'];
  /** Repeating a request with its key returns the same operation; another request with that key is refused. */
  readonly idempotencyKey?: InputMaybe<Scalars['String']['input']>;
  /** Put the archive under a legal hold, which keeps it until that is lifted. Requires the scope `state.retain`. */
  readonly legalHold: Scalars['Boolean']['input'];
  /** The state's label. */
  readonly name: Scalars['String']['input'];
  /** Who is to be able to open the archive beside the service's own recipients, as age recipients (`age1…`); 16 at most. */
  readonly recipients: ReadonlyArray<Scalars['String']['input']>;
  /**
   * Keep the archive until then at the least, from one day to ten years from now: nobody can shorten that, nor remove the
   * archive before. Requires the scope `state.retain`.
   */
  readonly retainUntil?: InputMaybe<Scalars['DateTime']['input']>;
  /** The workspace and environment to look in; defaults to the caller's own. */
  readonly scope?: InputMaybe<StateScopeInput>;
  /** How long to wait for the operation to end before answering, from 0 to 25 seconds. */
  readonly waitSeconds: Scalars['Int']['input'];
};

/** The result of requesting an export. */
export type ExportStateArchivePayload = {
  /** The operation; null when the request was refused before there was one. */
  readonly operation: Maybe<StateArchiveOperation>;
  /** Problems for the caller to fix; empty when there are none. */
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

/** What to import, and under which name. */
export type ImportStateArchiveInput = {
  /** Allow a second live state with this lineage: both would manage the same infrastructure. */
  readonly allowSharedLineage: Scalars['Boolean']['input'];
  /** For OVERWRITE: the name of the state to overwrite, repeated. */
  readonly confirmName?: InputMaybe<Scalars['String']['input']>;
  /** Verify and plan, but write nothing. */
  readonly dryRun: Scalars['Boolean']['input'];
  /** For OVERWRITE: the serial the state must be at; left out for a state without versions. */
  readonly expectedCurrentSerial?: InputMaybe<Scalars['BigInt']['input']>;
  /** Refuse the file unless it has this digest. */
  readonly expectedSha256?: InputMaybe<Scalars['Sha256']['input']>;
  /** The archive, sent in a multipart request. */
  readonly file?: InputMaybe<Scalars['Upload']['input']>;
  /** Repeating a request with its key returns the same operation; another request with that key is refused. */
  readonly idempotencyKey?: InputMaybe<Scalars['String']['input']>;
  /** The label to restore under; defaults to the archive's own. */
  readonly name?: InputMaybe<Scalars['String']['input']>;
  /** What to do when the destination is taken. */
  readonly onConflict: StateArchiveConflictPolicy;
  /** The workspace and environment to restore into; defaults to the caller's own. */
  readonly scope?: InputMaybe<StateScopeInput>;
  /**
   * The id of an upload that is whole, from `stageStateArchiveUpload`. A dry run leaves it to be used; an import uses it up,
   * however it ends.
   */
  readonly uploadId?: InputMaybe<Scalars['ID']['input']>;
  /** How long to wait for the operation to end before answering, from 0 to 25 seconds. */
  readonly waitSeconds: Scalars['Int']['input'];
};

/** The result of requesting an import. */
export type ImportStateArchivePayload = {
  /** The operation; null when the request was refused before there was one. */
  readonly operation: Maybe<StateArchiveOperation>;
  /** Problems for the caller to fix; empty when there are none. */
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

/** One raw state document for one state. Give exactly one of `file` and `document`. */
export type ImportStateSnapshotInput = {
  /** The document, as text. */
  readonly document?: InputMaybe<Scalars['String']['input']>;
  /** The document, sent in a multipart request. */
  readonly file?: InputMaybe<Scalars['Upload']['input']>;
  /** Repeating a request with its key returns the same version; another request with that key is refused. */
  readonly idempotencyKey?: InputMaybe<Scalars['String']['input']>;
  /** The state's label. */
  readonly name: Scalars['String']['input'];
  /** The workspace and environment to look in; defaults to the caller's own. */
  readonly scope?: InputMaybe<StateScopeInput>;
  /** What Kilolock records as the version's source: "import" (the default), "apply", "refresh" or "unknown". */
  readonly source?: InputMaybe<Scalars['String']['input']>;
};

/** The result of importing a snapshot. */
export type ImportStateSnapshotPayload = {
  /** The state written to; null when the caller may not see it. */
  readonly stateArchive: Maybe<StateArchive>;
  /** Problems for the caller to fix; empty when there are none. */
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
  /** The version written; null when the caller may not see its state. */
  readonly version: Maybe<StateArchiveVersion>;
};

export type Mutation = {
  /**
   * Cancels an export or import for good. One that is waiting never begins; one in progress ends within seconds and leaves
   * nothing behind. One that has ended, or is being committed at this moment, stays as it is.
   */
  readonly cancelStateArchiveOperation: Maybe<CancelStateArchiveOperationPayload>;
  /** Starts exporting a state's whole history to a single verifiable archive. */
  readonly exportStateArchive: Maybe<ExportStateArchivePayload>;
  /**
   * Starts restoring a whole history from an archive. The archive is verified to its last byte before the first row is
   * written, the import is a single transaction, and only OVERWRITE touches an existing state.
   */
  readonly importStateArchive: Maybe<ImportStateArchivePayload>;
  /**
   * Appends one raw state document as a state's next version, creating the state if there is none, as Kilolock does when
   * Terraform posts a state. A document carries no history; to restore one, use `importStateArchive`.
   */
  readonly importStateSnapshot: Maybe<ImportStateSnapshotPayload>;
  /**
   * Puts the archive of an export under a legal hold, which keeps it for as long as nobody lifts it, or lifts that. Who did is on
   * record.
   */
  readonly setStateArchiveLegalHold: Maybe<SetStateArchiveLegalHoldPayload>;
  /**
   * Waits for an archive that is sent apart from the request, in parts and with resumption, as tus 1.0 has it. When it is
   * whole, `importStateArchive` takes it by its id. The file's length and digest are bound to it.
   */
  readonly stageStateArchiveUpload: Maybe<StageStateArchiveUploadPayload>;
};


export type MutationCancelStateArchiveOperationArgs = {
  input: CancelStateArchiveOperationInput;
};


export type MutationExportStateArchiveArgs = {
  input: ExportStateArchiveInput;
};


export type MutationImportStateArchiveArgs = {
  input: ImportStateArchiveInput;
};


export type MutationImportStateSnapshotArgs = {
  input: ImportStateSnapshotInput;
};


export type MutationSetStateArchiveLegalHoldArgs = {
  input: SetStateArchiveLegalHoldInput;
};


export type MutationStageStateArchiveUploadArgs = {
  input: StageStateArchiveUploadInput;
};

/** Where a page ends, and whether another follows. */
export type PageInfo = {
  /** The cursor of the last item; give it as `after` for the next page. */
  readonly endCursor: Maybe<Scalars['String']['output']>;
  /** Whether more items follow. */
  readonly hasNextPage: Scalars['Boolean']['output'];
  /** Whether items came before. */
  readonly hasPreviousPage: Scalars['Boolean']['output'];
  /** The cursor of the first item. */
  readonly startCursor: Maybe<Scalars['String']['output']>;
};

export type Query = {
  /**
   * The archive view of one state, looked up by its label. Null when there is no such active state or the caller may not
   * see it: the two look the same.
   */
  readonly stateArchive: Maybe<StateArchive>;
  /** Who the credential of this request says the caller is, and what it permits. Nobody learns of another's. */
  readonly stateArchiveCaller: Maybe<StateArchiveCaller>;
  /** One export or import, by its id. Null when there is none or the caller may not see it. */
  readonly stateArchiveOperation: Maybe<StateArchiveOperation>;
  /**
   * The exports and imports the caller may see, newest first, including those that belong to no state, such as dry runs and
   * failed imports. Without `state.read`, only the caller's own.
   */
  readonly stateArchiveOperations: Maybe<StateArchiveOperationConnection>;
  /** The active states the caller may see, in ascending order of their labels. */
  readonly stateArchives: Maybe<StateArchiveConnection>;
};


export type QueryStateArchiveArgs = {
  name: Scalars['String']['input'];
  scope: InputMaybe<StateScopeInput>;
};


export type QueryStateArchiveOperationArgs = {
  id: Scalars['ID']['input'];
  scope: InputMaybe<StateScopeInput>;
};


export type QueryStateArchiveOperationsArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  filter: InputMaybe<StateArchiveOperationFilter>;
  first?: Scalars['Int']['input'];
  scope: InputMaybe<StateScopeInput>;
};


export type QueryStateArchivesArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  filter: InputMaybe<StateArchiveFilter>;
  first?: Scalars['Int']['input'];
  scope: InputMaybe<StateScopeInput>;
};

/** Which archive a legal hold is to keep, or to keep no longer. */
export type SetStateArchiveLegalHoldInput = {
  /** The id of the operation that exported it. */
  readonly id: Scalars['ID']['input'];
  /** Whether it is to be held. An archive that is not held any more is kept for as long as any other, and until `retainUntil`. */
  readonly legalHold: Scalars['Boolean']['input'];
  /** The environment of the operation; your credential's own if absent. */
  readonly scope?: InputMaybe<StateScopeInput>;
};

/** The result of putting an archive under a legal hold, or of lifting that. */
export type SetStateArchiveLegalHoldPayload = {
  /** The operation as it is now; null when there is none, or none you may see. */
  readonly operation: Maybe<StateArchiveOperation>;
  /** Problems for the caller to fix; empty when there are none. */
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

/** A file that is to be sent, to be restored from. */
export type StageStateArchiveUploadInput = {
  /** How many bytes the file has. */
  readonly byteLength: Scalars['BigInt']['input'];
  /** The file's name, for the record of its import. */
  readonly fileName?: InputMaybe<Scalars['String']['input']>;
  /** The workspace and environment it will be restored into; defaults to the caller's own. */
  readonly scope?: InputMaybe<StateScopeInput>;
  /** The digest of the whole file. */
  readonly sha256: Scalars['Sha256']['input'];
};

/** The result of asking for an upload. */
export type StageStateArchiveUploadPayload = {
  /** The upload that is waited for; null when it was refused. */
  readonly upload: Maybe<StateArchiveUpload>;
  /** Problems for the caller to fix; empty when there are none. */
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

/** A Kilolock state, as other subgraphs know it by id. */
export type State = {
  /** The archive view of the state; null when the caller may not see it. */
  readonly archive: Maybe<StateArchive>;
  /** The state's id in Kilolock. */
  readonly id: Scalars['ID']['output'];
};

/** A state as something that can be archived: its identity, its history, and its exports and imports. */
export type StateArchive = {
  /** When the state was created. */
  readonly createdAt: Maybe<Scalars['DateTime']['output']>;
  /** The public id of the environment the state belongs to. */
  readonly environmentId: Scalars['ID']['output'];
  /** The state's id in Kilolock. */
  readonly id: Scalars['ID']['output'];
  /** Where the state is in Kilolock's lifecycle. */
  readonly lifecycleStatus: StateLifecycleStatus;
  /** The lineage the state was first written with; null if no document ever named one. */
  readonly lineage: Maybe<Scalars['ID']['output']>;
  /** What an export taken now would say about itself; null while the state has no versions. */
  readonly manifest: Maybe<StateArchiveManifest>;
  /** The state's label within its environment. */
  readonly name: Scalars['String']['output'];
  /** The exports and imports of this state that the caller may see, newest first. */
  readonly operations: Maybe<StateArchiveOperationConnection>;
  /** The summary other services compose into their own types. */
  readonly status: StateArchiveStatus;
  /** Every tag, in order of name. */
  readonly tags: Maybe<ReadonlyArray<StateArchiveTag>>;
  /** When a version was last written or the lifecycle status last changed. */
  readonly updatedAt: Maybe<Scalars['DateTime']['output']>;
  /** One version, by serial or by tag: give exactly one of the two. Null when there is no such version. */
  readonly version: Maybe<StateArchiveVersion>;
  /** The versions, newest serial first. */
  readonly versions: Maybe<StateArchiveVersionConnection>;
  /** The public id of the workspace that owns the state. */
  readonly workspaceId: Scalars['ID']['output'];
};


/** A state as something that can be archived: its identity, its history, and its exports and imports. */
export type StateArchiveOperationsArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  first?: Scalars['Int']['input'];
};


/** A state as something that can be archived: its identity, its history, and its exports and imports. */
export type StateArchiveVersionArgs = {
  serial: InputMaybe<Scalars['BigInt']['input']>;
  tag: InputMaybe<Scalars['String']['input']>;
};


/** A state as something that can be archived: its identity, its history, and its exports and imports. */
export type StateArchiveVersionsArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  first?: Scalars['Int']['input'];
};

/** A caller, as the credential of the request has it. */
export type StateArchiveCaller = {
  /** The name that is written to history. */
  readonly actor: Scalars['String']['output'];
  /** The public id of the environment it works in; null where each request has to name one. */
  readonly environmentId: Maybe<Scalars['ID']['output']>;
  /** When it ends by itself; null when it is good until it is revoked. */
  readonly expiresAt: Maybe<Scalars['DateTime']['output']>;
  /**
   * What the credential permits of what this service knows, sorted. The grants of an account may hold in some environments
   * only.
   */
  readonly scopes: ReadonlyArray<Scalars['String']['output']>;
  /** The labels it is confined to, exact or with a `*` at the end; null for every state. */
  readonly statePatterns: Maybe<ReadonlyArray<Scalars['String']['output']>>;
  /** The identity that operations and links are bound to. */
  readonly subject: Scalars['String']['output'];
  /** The public id of the workspace it works in; null where each request has to name one. */
  readonly workspaceId: Maybe<Scalars['ID']['output']>;
};

/** The difference between a version and the one before it, in resource instances. */
export type StateArchiveChanges = {
  /** Instances that were not there before. */
  readonly added: Scalars['Int']['output'];
  /** Instances that were there before, with different contents. */
  readonly changed: Scalars['Int']['output'];
  /** Instances that are no longer there. */
  readonly removed: Scalars['Int']['output'];
};

/** What an import does when its destination is taken. */
export type StateArchiveConflictPolicy =
  /** Restore as an archived state alongside whatever is there, taken or not; Kilolock can make it active again. */
  | 'ARCHIVED_COPY'
  /**
   * Replace the existing history, which is exported first. Requires the scope `state.overwrite`, `confirmName` and
   * `expectedCurrentSerial`.
   */
  | 'OVERWRITE'
  /** Refuse, and touch nothing. */
  | 'REFUSE';

/** A page of states. */
export type StateArchiveConnection = {
  /** The items, with their cursors. */
  readonly edges: ReadonlyArray<StateArchiveEdge>;
  /** The items. */
  readonly nodes: ReadonlyArray<StateArchive>;
  /** Where the page ends. */
  readonly pageInfo: PageInfo;
};

/** A state in a page. */
export type StateArchiveEdge = {
  /** Where the item stands in the list. */
  readonly cursor: Scalars['String']['output'];
  /** The item. */
  readonly node: StateArchive;
};

/** The stable codes of what goes wrong in a mutation or its operation; docs/errors.md explains each. */
export type StateArchiveErrorCode =
  /** The file's bytes are not those that were written. */
  | 'ARCHIVE_CORRUPT'
  /** The file does not have the digest the caller expected, or announced it with. */
  | 'ARCHIVE_DIGEST_MISMATCH'
  /** The file is encrypted with age: it must be opened before it is sent. */
  | 'ARCHIVE_ENCRYPTED'
  /** The archive's parts contradict each other. */
  | 'ARCHIVE_INCONSISTENT'
  /** There is no archive of the operation to be held: it is no export that succeeded, or the archive's time is past. */
  | 'ARCHIVE_NOT_KEPT'
  /** Values were taken out of the archive for a hand-over: it is not the history any more. */
  | 'ARCHIVE_REDACTED'
  /** The file, or a part of the archive in it, is larger than is accepted. */
  | 'ARCHIVE_TOO_LARGE'
  /** The file ends before the archive does. */
  | 'ARCHIVE_TRUNCATED'
  /** The archive contains something that no archive may contain. */
  | 'ARCHIVE_UNSAFE'
  /** The file is not an archive, or is one in a format this service does not read. */
  | 'ARCHIVE_UNSUPPORTED_FORMAT'
  /** `confirmName` is not the name of the state to overwrite. */
  | 'CONFIRMATION_MISMATCH'
  /** When the operation was to begin, the credential no longer permitted it, or its environment was no longer open. */
  | 'FORBIDDEN'
  /** The stored history contradicts itself and must be repaired in Kilolock first. */
  | 'HISTORY_INCONSISTENT'
  /** The idempotency key was used for another request. */
  | 'IDEMPOTENCY_KEY_REUSED'
  /** The service failed; the log has the cause under the request id. */
  | 'INTERNAL'
  /** An input value is outside what is accepted. */
  | 'INVALID_INPUT'
  /** Another active state of the environment has this lineage. */
  | 'LINEAGE_IN_USE'
  /** The process or the database went away before the end; the message says whether anything may have been written. */
  | 'OPERATION_INTERRUPTED'
  /** The operation has ended, is being committed, or ends only with the one that it is a part of. */
  | 'OPERATION_NOT_CANCELLABLE'
  /** There is no such operation, or none you may see. */
  | 'OPERATION_NOT_FOUND'
  /** The state would exceed the workspace's resource quota, or a limit on archives kept, or on uploads waiting, is reached. */
  | 'QUOTA_EXCEEDED'
  /** The archive store cannot keep an archive from being removed. */
  | 'RETENTION_UNSUPPORTED'
  /** The archive's attestation is about another archive, or was changed, or its signature is wrong. */
  | 'SIGNATURE_INVALID'
  /** The service imports only what a key it trusts has signed, and none of them has signed the archive. */
  | 'SIGNATURE_REQUIRED'
  /** The state to overwrite is not at the expected serial. */
  | 'STALE_DESTINATION'
  /** The destination exists, in whatever lifecycle status; nothing was touched. */
  | 'STATE_ALREADY_EXISTS'
  /** The environment's own database holds the state more than once. */
  | 'STATE_AMBIGUOUS'
  /** The state has no version to export. */
  | 'STATE_EMPTY'
  /** The state is locked, or has an apply, a refresh or a reservation in progress. */
  | 'STATE_LOCKED'
  /** The state is suspended or archived, or an archived namesake of the same or unknown lineage holds the name. */
  | 'STATE_NOT_ACTIVE'
  /** There is no such active state, or the caller may not see it. */
  | 'STATE_NOT_FOUND'
  /** The caller has reached the limit on exports and imports in progress in this environment, or on files being sent. */
  | 'TOO_MANY_OPERATIONS'
  /** A raw state is not a document that Kilolock can hold. */
  | 'UNSUPPORTED_STATE_DOCUMENT'
  /** There is no such upload of the caller's, or no longer: it has expired, or an import has used it. */
  | 'UPLOAD_EXPIRED'
  /** The upload is not whole yet. */
  | 'UPLOAD_INCOMPLETE';

/** An archive file. */
export type StateArchiveFile = {
  /**
   * A short-lived link to download the file, signed for the caller and made anew each time it is read. Null for an import,
   * and once the file is gone.
   */
  readonly downloadUrl: Maybe<Scalars['String']['output']>;
  /** A suitable file name. */
  readonly fileName: Scalars['String']['output'];
  /** The digest of the history it holds. */
  readonly historyDigest: Scalars['Sha256']['output'];
  /** Whether a legal hold keeps the archive, for as long as nobody lifts it. False for an import. */
  readonly legalHold: Scalars['Boolean']['output'];
  /** Until when the archive is kept at the least, as its export asked; nobody can remove it before. */
  readonly retainUntil: Maybe<Scalars['DateTime']['output']>;
  /** The digest of the file. */
  readonly sha256: Scalars['Sha256']['output'];
  /** The size of the file. */
  readonly sizeBytes: Scalars['BigInt']['output'];
};

/** Narrows a list of states. */
export type StateArchiveFilter = {
  /** Only states whose label starts with this text; case-sensitive, without wildcards. */
  readonly namePrefix?: InputMaybe<Scalars['String']['input']>;
};

/** How an import placed its history. */
export type StateArchiveImportOutcome =
  /** A new archived state, alongside whatever is there. */
  | 'ARCHIVED_COPY'
  /** A new active state. */
  | 'CREATED'
  /** An existing state, whose history was replaced. */
  | 'REPLACED';

/** What an import did: counts, and everything worth knowing that did not stop it. */
export type StateArchiveImportReport = {
  /** Whether this was a dry run, which writes nothing. */
  readonly dryRun: Scalars['Boolean']['output'];
  /** Audit events restored. */
  readonly eventCount: Scalars['Int']['output'];
  /** The digest of the history as restored: the archive's own, unless raw states were normalised. */
  readonly historyDigest: Scalars['Sha256']['output'];
  /** The label restored under; for an archived copy, the name Kilolock gives archived states. */
  readonly name: Scalars['String']['output'];
  /** Raw states that PostgreSQL's jsonb writes differently than the archive does; their contents are unchanged. */
  readonly normalisedVersionCount: Scalars['Int']['output'];
  /** How the history was placed. */
  readonly outcome: StateArchiveImportOutcome;
  /** Outputs restored, over all versions. */
  readonly outputCount: Scalars['Int']['output'];
  /** Bytes of raw state in the archive. */
  readonly rawBytes: Scalars['BigInt']['output'];
  /** Versions of the history that was replaced; 0 when none was. */
  readonly replacedVersionCount: Scalars['Int']['output'];
  /** Resource lifecycle spans restored. */
  readonly resourceSpanCount: Scalars['Int']['output'];
  /** Whether the spans were derived from the raw states, because the archive carries none, or ones that disagree with them. */
  readonly resourceSpansDerived: Scalars['Boolean']['output'];
  /** How the archive was signed. Null when it was not; null also in a report of a release that looked at no signatures. */
  readonly signature: Maybe<StateArchiveSignature>;
  /** The label the archive was taken from. */
  readonly sourceName: Scalars['String']['output'];
  /** The id of the state the archive was taken from. */
  readonly sourceStateId: Scalars['ID']['output'];
  /** Tags restored. */
  readonly tagCount: Scalars['Int']['output'];
  /** Versions restored. */
  readonly versionCount: Scalars['Int']['output'];
  /** What is worth knowing, in order of serial. */
  readonly warnings: ReadonlyArray<StateArchiveWarning>;
};

/** What an archive of this history would say about itself: a preview of an export, without taking one. */
export type StateArchiveManifest = {
  /** The format and major version, "kilolock-state-archive/v1". */
  readonly archiveFormat: Scalars['String']['output'];
  /** The serial of the current version. */
  readonly currentSerial: Scalars['BigInt']['output'];
  /** The id of the current version. */
  readonly currentVersionId: Scalars['ID']['output'];
  /** The number of audit events that travel with the history; lock, export and download events stay behind. */
  readonly eventCount: Scalars['Int']['output'];
  /** When the oldest version was created. */
  readonly firstCreatedAt: Scalars['DateTime']['output'];
  /** The lowest serial. */
  readonly firstSerial: Scalars['BigInt']['output'];
  /** The digest of the whole history, the same in every backend that holds that history. */
  readonly historyDigest: Scalars['Sha256']['output'];
  /** When the newest version was created. */
  readonly lastCreatedAt: Scalars['DateTime']['output'];
  /** The highest serial, which is not always the current one. */
  readonly lastSerial: Scalars['BigInt']['output'];
  /** The state's lineage; null if no document ever named one. */
  readonly lineage: Maybe<Scalars['ID']['output']>;
  /** The state's label. */
  readonly name: Scalars['String']['output'];
  /** The total size of the raw states in bytes, uncompressed. */
  readonly rawBytes: Scalars['BigInt']['output'];
  /** The number of resource lifecycle spans. */
  readonly resourceSpanCount: Scalars['Int']['output'];
  /** The distinct sources of the versions, sorted. */
  readonly sources: ReadonlyArray<Scalars['String']['output']>;
  /** The number of tags. */
  readonly tagCount: Scalars['Int']['output'];
  /** The distinct Terraform versions recorded for the versions, sorted. */
  readonly terraformVersions: ReadonlyArray<Scalars['String']['output']>;
  /** The number of versions. */
  readonly versionCount: Scalars['Int']['output'];
};

/** An export or import: what was requested, how far along it is, and what came of it. */
export type StateArchiveOperation = {
  /** Who requested it, as named by their credential. */
  readonly actor: Scalars['String']['output'];
  /** The archive that an export produced, or that an import was given. */
  readonly archive: Maybe<StateArchiveFile>;
  /** When it was requested. */
  readonly createdAt: Scalars['DateTime']['output'];
  /** Why it failed. */
  readonly error: Maybe<StateArchiveUserError>;
  /** When the archive stops being available; null for an import, and while a legal hold keeps the archive. */
  readonly expiresAt: Maybe<Scalars['DateTime']['output']>;
  /** When it ended. */
  readonly finishedAt: Maybe<Scalars['DateTime']['output']>;
  /** The operation's id. */
  readonly id: Scalars['ID']['output'];
  /** Export or import. */
  readonly kind: StateArchiveOperationKind;
  /** The label of the exported state, or the one to restore under, whether or not there is such a state. */
  readonly name: Scalars['String']['output'];
  /** How far along it is. */
  readonly progress: StateArchiveOperationProgress;
  /** The export taken of the history that this import replaced. */
  readonly replaced: Maybe<StateArchiveOperation>;
  /** What an import did, or would have done in a dry run. Null also where a later release recorded what this one cannot tell. */
  readonly report: Maybe<StateArchiveImportReport>;
  /** When work began. */
  readonly startedAt: Maybe<Scalars['DateTime']['output']>;
  /** The exported or restored state. Null while there is none, or when the caller may not see it. */
  readonly stateArchive: Maybe<StateArchive>;
  /** Its status. */
  readonly status: StateArchiveOperationStatus;
  /** For an import that succeeded: which version became which, by serial. */
  readonly versionMapping: Maybe<StateArchiveVersionMappingConnection>;
};


/** An export or import: what was requested, how far along it is, and what came of it. */
export type StateArchiveOperationVersionMappingArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  first?: Scalars['Int']['input'];
};

/** A page of operations. */
export type StateArchiveOperationConnection = {
  /** The items, with their cursors. */
  readonly edges: ReadonlyArray<StateArchiveOperationEdge>;
  /** The items. */
  readonly nodes: ReadonlyArray<StateArchiveOperation>;
  /** Where the page ends. */
  readonly pageInfo: PageInfo;
};

/** An operation in a page. */
export type StateArchiveOperationEdge = {
  /** Where the item stands in the list. */
  readonly cursor: Scalars['String']['output'];
  /** The item. */
  readonly node: StateArchiveOperation;
};

/** Narrows a list of exports and imports. Operations must match every field that is given. */
export type StateArchiveOperationFilter = {
  /** Only operations requested by this actor, spelled exactly as in `actor`. */
  readonly actor?: InputMaybe<Scalars['String']['input']>;
  /** Only exports, or only imports. */
  readonly kind?: InputMaybe<StateArchiveOperationKind>;
  /**
   * Only operations whose label starts with this text; case-sensitive, without wildcards. An import's label is the one it
   * restores under.
   */
  readonly namePrefix?: InputMaybe<Scalars['String']['input']>;
  /** Only operations requested at this time or later. */
  readonly since?: InputMaybe<Scalars['DateTime']['input']>;
  /** Only operations with one of these statuses. */
  readonly status?: InputMaybe<ReadonlyArray<StateArchiveOperationStatus>>;
};

/** What an operation does. */
export type StateArchiveOperationKind =
  /** Writes a history to an archive. */
  | 'EXPORT'
  /** Restores a history from an archive. */
  | 'IMPORT';

/** How far along an operation is, in versions and in bytes of raw state. Totals are null until known. */
export type StateArchiveOperationProgress = {
  /** Bytes of raw state done. */
  readonly bytesDone: Scalars['BigInt']['output'];
  /** Bytes of raw state in total. */
  readonly bytesTotal: Maybe<Scalars['BigInt']['output']>;
  /** Versions done. */
  readonly versionsDone: Scalars['Int']['output'];
  /** Versions in total. */
  readonly versionsTotal: Maybe<Scalars['Int']['output']>;
};

/** The status of an operation. */
export type StateArchiveOperationStatus =
  /** Cancelled without effect. */
  | 'CANCELLED'
  /** Done, but the archive is past `expiresAt` and can no longer be downloaded. */
  | 'EXPIRED'
  /** Ended without effect; `error` says why. */
  | 'FAILED'
  /** Waiting to be worked on, for the first time or again after an interruption. */
  | 'PENDING'
  /** In progress. */
  | 'RUNNING'
  /** Done. The archive of an export can be downloaded until `expiresAt`. */
  | 'SUCCEEDED';

/** How an archive was signed. One with a wrong signature is imported by nobody. */
export type StateArchiveSignature = {
  /** The keys that have signed: of trusted ones those that were checked; otherwise those that the archive names. */
  readonly keyIds: ReadonlyArray<Scalars['String']['output']>;
  /** Whether a key that the service trusts has signed the archive. */
  readonly verified: Scalars['Boolean']['output'];
};

/** What another service needs to know about a state's archives, in one read. */
export type StateArchiveStatus = {
  /** Whether an export would find at least one version. */
  readonly exportable: Scalars['Boolean']['output'];
  /** The most recent export that succeeded. */
  readonly lastExport: Maybe<StateArchiveOperation>;
  /** The most recent import that succeeded: it created this state, or replaced its history. */
  readonly lastImport: Maybe<StateArchiveOperation>;
  /** Who holds the oldest lock on the state; null when it is not locked. A lock does not prevent an export. */
  readonly lockedBy: Maybe<Scalars['String']['output']>;
  /** How many versions the history holds. */
  readonly versionCount: Maybe<Scalars['Int']['output']>;
};

/** A name for a version. */
export type StateArchiveTag = {
  /** Who set it. */
  readonly actor: Scalars['String']['output'];
  /** When it was first set. */
  readonly createdAt: Maybe<Scalars['DateTime']['output']>;
  /** What it is for; null and "" are distinct. */
  readonly description: Maybe<Scalars['String']['output']>;
  /** The tag, case-sensitive. */
  readonly name: Scalars['String']['output'];
  /** The serial of the version it names. */
  readonly serial: Scalars['BigInt']['output'];
  /** When it was last moved. */
  readonly updatedAt: Maybe<Scalars['DateTime']['output']>;
};

/** A file that is waited for. */
export type StateArchiveUpload = {
  /** Until when it may be sent, and imported; then it is gone. */
  readonly expiresAt: Scalars['DateTime']['output'];
  /** The headers of a request that sends all of it. */
  readonly headers: ReadonlyArray<StateArchiveUploadHeader>;
  /** What `importStateArchive` takes. */
  readonly id: Scalars['ID']['output'];
  /** The method of a request that sends all of it. */
  readonly method: Scalars['String']['output'];
  /**
   * Where to send the file, with any client of tus 1.0. Whoever has it may send; it carries its own permission and needs no
   * other credential.
   */
  readonly url: Scalars['String']['output'];
};

/** A header of an HTTP request. */
export type StateArchiveUploadHeader = {
  /** The header's name. */
  readonly name: Scalars['String']['output'];
  /** The header's value. */
  readonly value: Scalars['String']['output'];
};

/** A problem for the caller to fix, or why an operation failed. */
export type StateArchiveUserError = {
  /** A stable code. */
  readonly code: StateArchiveErrorCode;
  /** What happened, where, and what to do about it. */
  readonly message: Scalars['String']['output'];
  /** The input field it concerns, from `input` down; null when it concerns none. */
  readonly path: Maybe<ReadonlyArray<Scalars['String']['output']>>;
};

/** One version of a state. */
export type StateArchiveVersion = {
  /** What changed since the previous version, by serial. */
  readonly changes: Maybe<StateArchiveChanges>;
  /** When it was written. */
  readonly createdAt: Maybe<Scalars['DateTime']['output']>;
  /** Who wrote it, according to the writer; null and "" are distinct. */
  readonly createdBy: Maybe<Scalars['String']['output']>;
  /** The version's id in Kilolock. */
  readonly id: Scalars['ID']['output'];
  /** Whether this is the current version of the state. */
  readonly isCurrent: Scalars['Boolean']['output'];
  /** The names of the outputs, sorted. Their values may be secret and are not shown. */
  readonly outputNames: Maybe<ReadonlyArray<Scalars['String']['output']>>;
  /** The raw state document, secrets included. */
  readonly rawState: Maybe<Scalars['String']['output']>;
  /** The number of resource instances in this version. */
  readonly resourceCount: Maybe<Scalars['Int']['output']>;
  /** The version's serial. */
  readonly serial: Scalars['BigInt']['output'];
  /** The digest of the raw state's bytes. */
  readonly sha256: Maybe<Scalars['Sha256']['output']>;
  /** The size of the raw state in bytes, as Kilolock serves it. */
  readonly sizeBytes: Maybe<Scalars['BigInt']['output']>;
  /** How it was written, such as "http_backend" or "apply"; free text. */
  readonly source: Scalars['String']['output'];
  /** The tags on this version, in order of name. */
  readonly tags: Maybe<ReadonlyArray<StateArchiveTag>>;
  /** The Terraform version recorded with it; null and "" are distinct. */
  readonly terraformVersion: Maybe<Scalars['String']['output']>;
};

/** A page of versions. */
export type StateArchiveVersionConnection = {
  /** The items, with their cursors. */
  readonly edges: ReadonlyArray<StateArchiveVersionEdge>;
  /** The items. */
  readonly nodes: ReadonlyArray<StateArchiveVersion>;
  /** Where the page ends. */
  readonly pageInfo: PageInfo;
  /** How many there are in all. */
  readonly totalCount: Scalars['Int']['output'];
};

/** A version in a page. */
export type StateArchiveVersionEdge = {
  /** Where the item stands in the list. */
  readonly cursor: Scalars['String']['output'];
  /** The item. */
  readonly node: StateArchiveVersion;
};

/** A version in the archive and the version it became. */
export type StateArchiveVersionMapping = {
  /** The serial, the same on both sides. */
  readonly serial: Scalars['BigInt']['output'];
  /** The version's id where the archive was exported. */
  readonly sourceVersionId: Scalars['ID']['output'];
  /** The version's id in the restored state. */
  readonly versionId: Scalars['ID']['output'];
};

/** A page of version mappings. */
export type StateArchiveVersionMappingConnection = {
  /** The items, with their cursors. */
  readonly edges: ReadonlyArray<StateArchiveVersionMappingEdge>;
  /** The items. */
  readonly nodes: ReadonlyArray<StateArchiveVersionMapping>;
  /** Where the page ends. */
  readonly pageInfo: PageInfo;
};

/** A version mapping in a page. */
export type StateArchiveVersionMappingEdge = {
  /** Where the item stands in the list. */
  readonly cursor: Scalars['String']['output'];
  /** The item. */
  readonly node: StateArchiveVersionMapping;
};

/** Something worth knowing that did not stop an import. */
export type StateArchiveWarning = {
  /** A stable code; null for one recorded by a later release. */
  readonly code: Maybe<StateArchiveWarningCode>;
  /** What was found, and what it means. */
  readonly message: Scalars['String']['output'];
  /** The serial of the version it was found in; null when it concerns the whole archive. */
  readonly serial: Maybe<Scalars['BigInt']['output']>;
};

/** The stable codes of warnings. */
export type StateArchiveWarningCode =
  /** A document holds several instances with the same address. */
  | 'ADDRESS_REPEATED'
  /** The archive is signed, and by no key that the service trusts: who made it is not known. */
  | 'ATTESTATION_NOT_VERIFIED'
  /** The current version does not have the highest serial. */
  | 'CURRENT_IS_NOT_LAST'
  /** A document holds a deposed object, which shares its address with the current one if there is one. */
  | 'DEPOSED_INSTANCE'
  /** A document states a lineage other than the state's. Both are kept. */
  | 'LINEAGE_MISMATCH'
  /** The restored state has a different lock policy from the archived one. */
  | 'LOCK_POLICY_CHANGED'
  /** Some raw states are kept as PostgreSQL's jsonb writes them, which is not how the archive does. */
  | 'RAW_STATES_NORMALISED'
  /** Some resource spans keep a hash of attributes written differently than Terraform writes them, as Kilolock recorded it. */
  | 'RESOURCE_HASHES_KEPT'
  /** The resource spans were derived from the raw states: the archive carries none, or ones that disagree with them. */
  | 'RESOURCE_SPANS_DERIVED'
  /** A document states a serial other than the one it is stored under. Both are kept. */
  | 'SERIAL_MISMATCH'
  /** The archive has fields that this release does not know. They were left out. */
  | 'UNKNOWN_FIELDS';

/** Where a state is in Kilolock's lifecycle. */
export type StateLifecycleStatus =
  /** In use. */
  | 'ACTIVE'
  /** Set aside under another name. */
  | 'ARCHIVED'
  /** On hold: Kilolock refuses reads and writes. */
  | 'SUSPENDED';

/** The workspace and environment that a label is looked up in. */
export type StateScopeInput = {
  /** The environment's public id, such as "env_7b8c9d0e1f2a". */
  readonly environmentId: Scalars['ID']['input'];
  /** Why support enters an environment other than its own: required in that case, and recorded. */
  readonly reason?: InputMaybe<Scalars['String']['input']>;
  /** The workspace's public id, such as "ws_3f9a1c2b4d5e". */
  readonly workspaceId: Scalars['ID']['input'];
};



export type ResolverTypeWrapper<T> = Promise<T> | T;

export type ReferenceResolver<TResult, TReference, TContext> = (
      reference: TReference,
      context: TContext,
      info: GraphQLResolveInfo
    ) => Promise<TResult> | TResult;

      type ScalarCheck<T, S> = S extends true ? T : NullableCheck<T, S>;
      type NullableCheck<T, S> = Maybe<T> extends T ? Maybe<ListCheck<NonNullable<T>, S>> : ListCheck<T, S>;
      type ListCheck<T, S> = T extends (infer U)[] ? NullableCheck<U, S>[] : GraphQLRecursivePick<T, S>;
      export type GraphQLRecursivePick<T, S> = { [K in keyof T & keyof S]: ScalarCheck<T[K], S[K]> };
    

export type ResolverWithResolve<TResult, TParent, TContext, TArgs> = {
  resolve: ResolverFn<TResult, TParent, TContext, TArgs>;
};
export type Resolver<TResult, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> = ResolverFn<TResult, TParent, TContext, TArgs> | ResolverWithResolve<TResult, TParent, TContext, TArgs>;

export type ResolverFn<TResult, TParent, TContext, TArgs> = (
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => Promise<TResult> | TResult;

export type SubscriptionSubscribeFn<TResult, TParent, TContext, TArgs> = (
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => AsyncIterable<TResult> | Promise<AsyncIterable<TResult>>;

export type SubscriptionResolveFn<TResult, TParent, TContext, TArgs> = (
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => TResult | Promise<TResult>;

export interface SubscriptionSubscriberObject<TResult, TKey extends string, TParent, TContext, TArgs> {
  subscribe: SubscriptionSubscribeFn<{ [key in TKey]: TResult }, TParent, TContext, TArgs>;
  resolve?: SubscriptionResolveFn<TResult, { [key in TKey]: TResult }, TContext, TArgs>;
}

export interface SubscriptionResolverObject<TResult, TParent, TContext, TArgs> {
  subscribe: SubscriptionSubscribeFn<any, TParent, TContext, TArgs>;
  resolve: SubscriptionResolveFn<TResult, any, TContext, TArgs>;
}

export type SubscriptionObject<TResult, TKey extends string, TParent, TContext, TArgs> =
  | SubscriptionSubscriberObject<TResult, TKey, TParent, TContext, TArgs>
  | SubscriptionResolverObject<TResult, TParent, TContext, TArgs>;

export type SubscriptionResolver<TResult, TKey extends string, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> =
  | ((...args: any[]) => SubscriptionObject<TResult, TKey, TParent, TContext, TArgs>)
  | SubscriptionObject<TResult, TKey, TParent, TContext, TArgs>;

export type TypeResolveFn<TTypes, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>> = (
  parent: TParent,
  context: TContext,
  info: GraphQLResolveInfo
) => Maybe<TTypes> | Promise<Maybe<TTypes>>;

export type IsTypeOfResolverFn<T = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>> = (obj: T, context: TContext, info: GraphQLResolveInfo) => boolean | Promise<boolean>;

export type NextResolverFn<T> = () => Promise<T>;

export type DirectiveResolverFn<TResult = Record<PropertyKey, never>, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> = (
  next: NextResolverFn<TResult>,
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => TResult | Promise<TResult>;

/** Mapping of federation types */
export type FederationTypes = {
  State: State;
  StateArchive: StateArchive;
  StateArchiveOperation: StateArchiveOperation;
};

/** Mapping of federation reference types */
export type FederationReferenceTypes = {
  State:
    ( { __typename: 'State' }
    & GraphQLRecursivePick<FederationTypes['State'], {"id":true}> );
  StateArchive:
    ( { __typename: 'StateArchive' }
    & ( GraphQLRecursivePick<FederationTypes['StateArchive'], {"id":true}>
        | GraphQLRecursivePick<FederationTypes['StateArchive'], {"workspaceId":true,"environmentId":true,"name":true}> ) );
  StateArchiveOperation:
    ( { __typename: 'StateArchiveOperation' }
    & GraphQLRecursivePick<FederationTypes['StateArchiveOperation'], {"id":true}> );
};



/** Mapping between all available schema types and the resolvers types */
export type ResolversTypes = {
  BigInt: ResolverTypeWrapper<Scalars['BigInt']['output']>;
  CancelStateArchiveOperationInput: CancelStateArchiveOperationInput;
  ID: ResolverTypeWrapper<Scalars['ID']['output']>;
  CancelStateArchiveOperationPayload: ResolverTypeWrapper<Omit<CancelStateArchiveOperationPayload, 'operation'> & { operation?: Maybe<ResolversTypes['StateArchiveOperation']> }>;
  DateTime: ResolverTypeWrapper<Scalars['DateTime']['output']>;
  ExportStateArchiveInput: ExportStateArchiveInput;
  Boolean: ResolverTypeWrapper<Scalars['Boolean']['output']>;
  String: ResolverTypeWrapper<Scalars['String']['output']>;
  Int: ResolverTypeWrapper<Scalars['Int']['output']>;
  ExportStateArchivePayload: ResolverTypeWrapper<Omit<ExportStateArchivePayload, 'operation'> & { operation?: Maybe<ResolversTypes['StateArchiveOperation']> }>;
  ImportStateArchiveInput: ImportStateArchiveInput;
  ImportStateArchivePayload: ResolverTypeWrapper<Omit<ImportStateArchivePayload, 'operation'> & { operation?: Maybe<ResolversTypes['StateArchiveOperation']> }>;
  ImportStateSnapshotInput: ImportStateSnapshotInput;
  ImportStateSnapshotPayload: ResolverTypeWrapper<Omit<ImportStateSnapshotPayload, 'stateArchive' | 'version'> & { stateArchive?: Maybe<ResolversTypes['StateArchive']>, version?: Maybe<ResolversTypes['StateArchiveVersion']> }>;
  Mutation: ResolverTypeWrapper<Record<PropertyKey, never>>;
  PageInfo: ResolverTypeWrapper<PageInfo>;
  Query: ResolverTypeWrapper<Record<PropertyKey, never>>;
  SetStateArchiveLegalHoldInput: SetStateArchiveLegalHoldInput;
  SetStateArchiveLegalHoldPayload: ResolverTypeWrapper<Omit<SetStateArchiveLegalHoldPayload, 'operation'> & { operation?: Maybe<ResolversTypes['StateArchiveOperation']> }>;
  Sha256: ResolverTypeWrapper<Scalars['Sha256']['output']>;
  StageStateArchiveUploadInput: StageStateArchiveUploadInput;
  StageStateArchiveUploadPayload: ResolverTypeWrapper<StageStateArchiveUploadPayload>;
  State: ResolverTypeWrapper<StateParent>;
  StateArchive: ResolverTypeWrapper<StateArchiveParent>;
  StateArchiveCaller: ResolverTypeWrapper<StateArchiveCaller>;
  StateArchiveChanges: ResolverTypeWrapper<VersionContents>;
  StateArchiveConflictPolicy: StateArchiveConflictPolicy;
  StateArchiveConnection: ResolverTypeWrapper<Omit<StateArchiveConnection, 'edges' | 'nodes'> & { edges: ReadonlyArray<ResolversTypes['StateArchiveEdge']>, nodes: ReadonlyArray<ResolversTypes['StateArchive']> }>;
  StateArchiveEdge: ResolverTypeWrapper<Omit<StateArchiveEdge, 'node'> & { node: ResolversTypes['StateArchive'] }>;
  StateArchiveErrorCode: StateArchiveErrorCode;
  StateArchiveFile: ResolverTypeWrapper<FileParent>;
  StateArchiveFilter: StateArchiveFilter;
  StateArchiveImportOutcome: StateArchiveImportOutcome;
  StateArchiveImportReport: ResolverTypeWrapper<RestoreReport>;
  StateArchiveManifest: ResolverTypeWrapper<StateArchiveManifest>;
  StateArchiveOperation: ResolverTypeWrapper<OperationParent>;
  StateArchiveOperationConnection: ResolverTypeWrapper<Omit<StateArchiveOperationConnection, 'edges' | 'nodes'> & { edges: ReadonlyArray<ResolversTypes['StateArchiveOperationEdge']>, nodes: ReadonlyArray<ResolversTypes['StateArchiveOperation']> }>;
  StateArchiveOperationEdge: ResolverTypeWrapper<Omit<StateArchiveOperationEdge, 'node'> & { node: ResolversTypes['StateArchiveOperation'] }>;
  StateArchiveOperationFilter: StateArchiveOperationFilter;
  StateArchiveOperationKind: StateArchiveOperationKind;
  StateArchiveOperationProgress: ResolverTypeWrapper<StateArchiveOperationProgress>;
  StateArchiveOperationStatus: StateArchiveOperationStatus;
  StateArchiveSignature: ResolverTypeWrapper<StateArchiveSignature>;
  StateArchiveStatus: ResolverTypeWrapper<StateArchiveParent>;
  StateArchiveTag: ResolverTypeWrapper<TagParent>;
  StateArchiveUpload: ResolverTypeWrapper<StateArchiveUpload>;
  StateArchiveUploadHeader: ResolverTypeWrapper<StateArchiveUploadHeader>;
  StateArchiveUserError: ResolverTypeWrapper<StateArchiveUserError>;
  StateArchiveVersion: ResolverTypeWrapper<VersionParent>;
  StateArchiveVersionConnection: ResolverTypeWrapper<Omit<StateArchiveVersionConnection, 'edges' | 'nodes'> & { edges: ReadonlyArray<ResolversTypes['StateArchiveVersionEdge']>, nodes: ReadonlyArray<ResolversTypes['StateArchiveVersion']> }>;
  StateArchiveVersionEdge: ResolverTypeWrapper<Omit<StateArchiveVersionEdge, 'node'> & { node: ResolversTypes['StateArchiveVersion'] }>;
  StateArchiveVersionMapping: ResolverTypeWrapper<StateArchiveVersionMapping>;
  StateArchiveVersionMappingConnection: ResolverTypeWrapper<StateArchiveVersionMappingConnection>;
  StateArchiveVersionMappingEdge: ResolverTypeWrapper<StateArchiveVersionMappingEdge>;
  StateArchiveWarning: ResolverTypeWrapper<StateArchiveWarning>;
  StateArchiveWarningCode: StateArchiveWarningCode;
  StateLifecycleStatus: StateLifecycleStatus;
  StateScopeInput: StateScopeInput;
  Upload: ResolverTypeWrapper<Scalars['Upload']['output']>;
};

/** Mapping between all available schema types and the resolvers parents */
export type ResolversParentTypes = {
  BigInt: Scalars['BigInt']['output'];
  CancelStateArchiveOperationInput: CancelStateArchiveOperationInput;
  ID: Scalars['ID']['output'];
  CancelStateArchiveOperationPayload: Omit<CancelStateArchiveOperationPayload, 'operation'> & { operation?: Maybe<ResolversParentTypes['StateArchiveOperation']> };
  DateTime: Scalars['DateTime']['output'];
  ExportStateArchiveInput: ExportStateArchiveInput;
  Boolean: Scalars['Boolean']['output'];
  String: Scalars['String']['output'];
  Int: Scalars['Int']['output'];
  ExportStateArchivePayload: Omit<ExportStateArchivePayload, 'operation'> & { operation?: Maybe<ResolversParentTypes['StateArchiveOperation']> };
  ImportStateArchiveInput: ImportStateArchiveInput;
  ImportStateArchivePayload: Omit<ImportStateArchivePayload, 'operation'> & { operation?: Maybe<ResolversParentTypes['StateArchiveOperation']> };
  ImportStateSnapshotInput: ImportStateSnapshotInput;
  ImportStateSnapshotPayload: Omit<ImportStateSnapshotPayload, 'stateArchive' | 'version'> & { stateArchive?: Maybe<ResolversParentTypes['StateArchive']>, version?: Maybe<ResolversParentTypes['StateArchiveVersion']> };
  Mutation: Record<PropertyKey, never>;
  PageInfo: PageInfo;
  Query: Record<PropertyKey, never>;
  SetStateArchiveLegalHoldInput: SetStateArchiveLegalHoldInput;
  SetStateArchiveLegalHoldPayload: Omit<SetStateArchiveLegalHoldPayload, 'operation'> & { operation?: Maybe<ResolversParentTypes['StateArchiveOperation']> };
  Sha256: Scalars['Sha256']['output'];
  StageStateArchiveUploadInput: StageStateArchiveUploadInput;
  StageStateArchiveUploadPayload: StageStateArchiveUploadPayload;
  State: StateParent;
  StateArchive: StateArchiveParent;
  StateArchiveCaller: StateArchiveCaller;
  StateArchiveChanges: VersionContents;
  StateArchiveConnection: Omit<StateArchiveConnection, 'edges' | 'nodes'> & { edges: ReadonlyArray<ResolversParentTypes['StateArchiveEdge']>, nodes: ReadonlyArray<ResolversParentTypes['StateArchive']> };
  StateArchiveEdge: Omit<StateArchiveEdge, 'node'> & { node: ResolversParentTypes['StateArchive'] };
  StateArchiveFile: FileParent;
  StateArchiveFilter: StateArchiveFilter;
  StateArchiveImportReport: RestoreReport;
  StateArchiveManifest: StateArchiveManifest;
  StateArchiveOperation: OperationParent;
  StateArchiveOperationConnection: Omit<StateArchiveOperationConnection, 'edges' | 'nodes'> & { edges: ReadonlyArray<ResolversParentTypes['StateArchiveOperationEdge']>, nodes: ReadonlyArray<ResolversParentTypes['StateArchiveOperation']> };
  StateArchiveOperationEdge: Omit<StateArchiveOperationEdge, 'node'> & { node: ResolversParentTypes['StateArchiveOperation'] };
  StateArchiveOperationFilter: StateArchiveOperationFilter;
  StateArchiveOperationProgress: StateArchiveOperationProgress;
  StateArchiveSignature: StateArchiveSignature;
  StateArchiveStatus: StateArchiveParent;
  StateArchiveTag: TagParent;
  StateArchiveUpload: StateArchiveUpload;
  StateArchiveUploadHeader: StateArchiveUploadHeader;
  StateArchiveUserError: StateArchiveUserError;
  StateArchiveVersion: VersionParent;
  StateArchiveVersionConnection: Omit<StateArchiveVersionConnection, 'edges' | 'nodes'> & { edges: ReadonlyArray<ResolversParentTypes['StateArchiveVersionEdge']>, nodes: ReadonlyArray<ResolversParentTypes['StateArchiveVersion']> };
  StateArchiveVersionEdge: Omit<StateArchiveVersionEdge, 'node'> & { node: ResolversParentTypes['StateArchiveVersion'] };
  StateArchiveVersionMapping: StateArchiveVersionMapping;
  StateArchiveVersionMappingConnection: StateArchiveVersionMappingConnection;
  StateArchiveVersionMappingEdge: StateArchiveVersionMappingEdge;
  StateArchiveWarning: StateArchiveWarning;
  StateScopeInput: StateScopeInput;
  Upload: Scalars['Upload']['output'];
};

export interface BigIntScalarConfig extends GraphQLScalarTypeConfig<ResolversTypes['BigInt'], any> {
  name: 'BigInt';
}

export type CancelStateArchiveOperationPayloadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['CancelStateArchiveOperationPayload'] = ResolversParentTypes['CancelStateArchiveOperationPayload']> = {
  operation?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  userErrors?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
};

export interface DateTimeScalarConfig extends GraphQLScalarTypeConfig<ResolversTypes['DateTime'], any> {
  name: 'DateTime';
}

export type ExportStateArchivePayloadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['ExportStateArchivePayload'] = ResolversParentTypes['ExportStateArchivePayload']> = {
  operation?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  userErrors?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
};

export type ImportStateArchivePayloadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['ImportStateArchivePayload'] = ResolversParentTypes['ImportStateArchivePayload']> = {
  operation?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  userErrors?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
};

export type ImportStateSnapshotPayloadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['ImportStateSnapshotPayload'] = ResolversParentTypes['ImportStateSnapshotPayload']> = {
  stateArchive?: Resolver<Maybe<ResolversTypes['StateArchive']>, ParentType, ContextType>;
  userErrors?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
  version?: Resolver<Maybe<ResolversTypes['StateArchiveVersion']>, ParentType, ContextType>;
};

export type MutationResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['Mutation'] = ResolversParentTypes['Mutation']> = {
  cancelStateArchiveOperation?: Resolver<Maybe<ResolversTypes['CancelStateArchiveOperationPayload']>, ParentType, ContextType, RequireFields<MutationCancelStateArchiveOperationArgs, 'input'>>;
  exportStateArchive?: Resolver<Maybe<ResolversTypes['ExportStateArchivePayload']>, ParentType, ContextType, RequireFields<MutationExportStateArchiveArgs, 'input'>>;
  importStateArchive?: Resolver<Maybe<ResolversTypes['ImportStateArchivePayload']>, ParentType, ContextType, RequireFields<MutationImportStateArchiveArgs, 'input'>>;
  importStateSnapshot?: Resolver<Maybe<ResolversTypes['ImportStateSnapshotPayload']>, ParentType, ContextType, RequireFields<MutationImportStateSnapshotArgs, 'input'>>;
  setStateArchiveLegalHold?: Resolver<Maybe<ResolversTypes['SetStateArchiveLegalHoldPayload']>, ParentType, ContextType, RequireFields<MutationSetStateArchiveLegalHoldArgs, 'input'>>;
  stageStateArchiveUpload?: Resolver<Maybe<ResolversTypes['StageStateArchiveUploadPayload']>, ParentType, ContextType, RequireFields<MutationStageStateArchiveUploadArgs, 'input'>>;
};

export type PageInfoResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['PageInfo'] = ResolversParentTypes['PageInfo']> = {
  endCursor?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  hasNextPage?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  hasPreviousPage?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  startCursor?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
};

export type QueryResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['Query'] = ResolversParentTypes['Query']> = {
  stateArchive?: Resolver<Maybe<ResolversTypes['StateArchive']>, ParentType, ContextType, RequireFields<QueryStateArchiveArgs, 'name'>>;
  stateArchiveCaller?: Resolver<Maybe<ResolversTypes['StateArchiveCaller']>, ParentType, ContextType>;
  stateArchiveOperation?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType, RequireFields<QueryStateArchiveOperationArgs, 'id'>>;
  stateArchiveOperations?: Resolver<Maybe<ResolversTypes['StateArchiveOperationConnection']>, ParentType, ContextType, RequireFields<QueryStateArchiveOperationsArgs, 'first'>>;
  stateArchives?: Resolver<Maybe<ResolversTypes['StateArchiveConnection']>, ParentType, ContextType, RequireFields<QueryStateArchivesArgs, 'first'>>;
};

export type SetStateArchiveLegalHoldPayloadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['SetStateArchiveLegalHoldPayload'] = ResolversParentTypes['SetStateArchiveLegalHoldPayload']> = {
  operation?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  userErrors?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
};

export interface Sha256ScalarConfig extends GraphQLScalarTypeConfig<ResolversTypes['Sha256'], any> {
  name: 'Sha256';
}

export type StageStateArchiveUploadPayloadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StageStateArchiveUploadPayload'] = ResolversParentTypes['StageStateArchiveUploadPayload']> = {
  upload?: Resolver<Maybe<ResolversTypes['StateArchiveUpload']>, ParentType, ContextType>;
  userErrors?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
};

export type StateResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['State'] = ResolversParentTypes['State'], FederationReferenceType extends FederationReferenceTypes['State'] = FederationReferenceTypes['State']> = {
  __resolveReference?: ReferenceResolver<Maybe<ResolversTypes['State']> | FederationReferenceType, FederationReferenceType, ContextType>;
  archive?: Resolver<Maybe<ResolversTypes['StateArchive']>, ParentType, ContextType>;
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
};

export type StateArchiveResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchive'] = ResolversParentTypes['StateArchive'], FederationReferenceType extends FederationReferenceTypes['StateArchive'] = FederationReferenceTypes['StateArchive']> = {
  __resolveReference?: ReferenceResolver<Maybe<ResolversTypes['StateArchive']> | FederationReferenceType, FederationReferenceType, ContextType>;
  createdAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  environmentId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  lifecycleStatus?: Resolver<ResolversTypes['StateLifecycleStatus'], ParentType, ContextType>;
  lineage?: Resolver<Maybe<ResolversTypes['ID']>, ParentType, ContextType>;
  manifest?: Resolver<Maybe<ResolversTypes['StateArchiveManifest']>, ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  operations?: Resolver<Maybe<ResolversTypes['StateArchiveOperationConnection']>, ParentType, ContextType, RequireFields<StateArchiveOperationsArgs, 'first'>>;
  status?: Resolver<ResolversTypes['StateArchiveStatus'], ParentType, ContextType>;
  tags?: Resolver<Maybe<ReadonlyArray<ResolversTypes['StateArchiveTag']>>, ParentType, ContextType>;
  updatedAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  version?: Resolver<Maybe<ResolversTypes['StateArchiveVersion']>, ParentType, ContextType, Partial<StateArchiveVersionArgs>>;
  versions?: Resolver<Maybe<ResolversTypes['StateArchiveVersionConnection']>, ParentType, ContextType, RequireFields<StateArchiveVersionsArgs, 'first'>>;
  workspaceId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
};

export type StateArchiveCallerResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveCaller'] = ResolversParentTypes['StateArchiveCaller']> = {
  actor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  environmentId?: Resolver<Maybe<ResolversTypes['ID']>, ParentType, ContextType>;
  expiresAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  scopes?: Resolver<ReadonlyArray<ResolversTypes['String']>, ParentType, ContextType>;
  statePatterns?: Resolver<Maybe<ReadonlyArray<ResolversTypes['String']>>, ParentType, ContextType>;
  subject?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  workspaceId?: Resolver<Maybe<ResolversTypes['ID']>, ParentType, ContextType>;
};

export type StateArchiveChangesResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveChanges'] = ResolversParentTypes['StateArchiveChanges']> = {
  added?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  changed?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  removed?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
};

export type StateArchiveConnectionResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveConnection'] = ResolversParentTypes['StateArchiveConnection']> = {
  edges?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveEdge']>, ParentType, ContextType>;
  nodes?: Resolver<ReadonlyArray<ResolversTypes['StateArchive']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type StateArchiveEdgeResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveEdge'] = ResolversParentTypes['StateArchiveEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['StateArchive'], ParentType, ContextType>;
};

export type StateArchiveFileResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveFile'] = ResolversParentTypes['StateArchiveFile']> = {
  downloadUrl?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  fileName?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  historyDigest?: Resolver<ResolversTypes['Sha256'], ParentType, ContextType>;
  legalHold?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  retainUntil?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  sha256?: Resolver<ResolversTypes['Sha256'], ParentType, ContextType>;
  sizeBytes?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
};

export type StateArchiveImportReportResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveImportReport'] = ResolversParentTypes['StateArchiveImportReport']> = {
  dryRun?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  eventCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  historyDigest?: Resolver<ResolversTypes['Sha256'], ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  normalisedVersionCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  outcome?: Resolver<ResolversTypes['StateArchiveImportOutcome'], ParentType, ContextType>;
  outputCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  rawBytes?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  replacedVersionCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  resourceSpanCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  resourceSpansDerived?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  signature?: Resolver<Maybe<ResolversTypes['StateArchiveSignature']>, ParentType, ContextType>;
  sourceName?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  sourceStateId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  tagCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  versionCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  warnings?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveWarning']>, ParentType, ContextType>;
};

export type StateArchiveManifestResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveManifest'] = ResolversParentTypes['StateArchiveManifest']> = {
  archiveFormat?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  currentSerial?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  currentVersionId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  eventCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  firstCreatedAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  firstSerial?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  historyDigest?: Resolver<ResolversTypes['Sha256'], ParentType, ContextType>;
  lastCreatedAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  lastSerial?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  lineage?: Resolver<Maybe<ResolversTypes['ID']>, ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  rawBytes?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  resourceSpanCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  sources?: Resolver<ReadonlyArray<ResolversTypes['String']>, ParentType, ContextType>;
  tagCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  terraformVersions?: Resolver<ReadonlyArray<ResolversTypes['String']>, ParentType, ContextType>;
  versionCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
};

export type StateArchiveOperationResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveOperation'] = ResolversParentTypes['StateArchiveOperation'], FederationReferenceType extends FederationReferenceTypes['StateArchiveOperation'] = FederationReferenceTypes['StateArchiveOperation']> = {
  __resolveReference?: ReferenceResolver<Maybe<ResolversTypes['StateArchiveOperation']> | FederationReferenceType, FederationReferenceType, ContextType>;
  actor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  archive?: Resolver<Maybe<ResolversTypes['StateArchiveFile']>, ParentType, ContextType>;
  createdAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  error?: Resolver<Maybe<ResolversTypes['StateArchiveUserError']>, ParentType, ContextType>;
  expiresAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  finishedAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  kind?: Resolver<ResolversTypes['StateArchiveOperationKind'], ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  progress?: Resolver<ResolversTypes['StateArchiveOperationProgress'], ParentType, ContextType>;
  replaced?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  report?: Resolver<Maybe<ResolversTypes['StateArchiveImportReport']>, ParentType, ContextType>;
  startedAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  stateArchive?: Resolver<Maybe<ResolversTypes['StateArchive']>, ParentType, ContextType>;
  status?: Resolver<ResolversTypes['StateArchiveOperationStatus'], ParentType, ContextType>;
  versionMapping?: Resolver<Maybe<ResolversTypes['StateArchiveVersionMappingConnection']>, ParentType, ContextType, RequireFields<StateArchiveOperationVersionMappingArgs, 'first'>>;
};

export type StateArchiveOperationConnectionResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveOperationConnection'] = ResolversParentTypes['StateArchiveOperationConnection']> = {
  edges?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveOperationEdge']>, ParentType, ContextType>;
  nodes?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type StateArchiveOperationEdgeResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveOperationEdge'] = ResolversParentTypes['StateArchiveOperationEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['StateArchiveOperation'], ParentType, ContextType>;
};

export type StateArchiveOperationProgressResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveOperationProgress'] = ResolversParentTypes['StateArchiveOperationProgress']> = {
  bytesDone?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  bytesTotal?: Resolver<Maybe<ResolversTypes['BigInt']>, ParentType, ContextType>;
  versionsDone?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
  versionsTotal?: Resolver<Maybe<ResolversTypes['Int']>, ParentType, ContextType>;
};

export type StateArchiveSignatureResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveSignature'] = ResolversParentTypes['StateArchiveSignature']> = {
  keyIds?: Resolver<ReadonlyArray<ResolversTypes['String']>, ParentType, ContextType>;
  verified?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
};

export type StateArchiveStatusResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveStatus'] = ResolversParentTypes['StateArchiveStatus']> = {
  exportable?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  lastExport?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  lastImport?: Resolver<Maybe<ResolversTypes['StateArchiveOperation']>, ParentType, ContextType>;
  lockedBy?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  versionCount?: Resolver<Maybe<ResolversTypes['Int']>, ParentType, ContextType>;
};

export type StateArchiveTagResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveTag'] = ResolversParentTypes['StateArchiveTag']> = {
  actor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  createdAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  description?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  serial?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  updatedAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
};

export type StateArchiveUploadResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveUpload'] = ResolversParentTypes['StateArchiveUpload']> = {
  expiresAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  headers?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveUploadHeader']>, ParentType, ContextType>;
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  method?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  url?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
};

export type StateArchiveUploadHeaderResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveUploadHeader'] = ResolversParentTypes['StateArchiveUploadHeader']> = {
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  value?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
};

export type StateArchiveUserErrorResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveUserError'] = ResolversParentTypes['StateArchiveUserError']> = {
  code?: Resolver<ResolversTypes['StateArchiveErrorCode'], ParentType, ContextType>;
  message?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  path?: Resolver<Maybe<ReadonlyArray<ResolversTypes['String']>>, ParentType, ContextType>;
};

export type StateArchiveVersionResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveVersion'] = ResolversParentTypes['StateArchiveVersion']> = {
  changes?: Resolver<Maybe<ResolversTypes['StateArchiveChanges']>, ParentType, ContextType>;
  createdAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  createdBy?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  isCurrent?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  outputNames?: Resolver<Maybe<ReadonlyArray<ResolversTypes['String']>>, ParentType, ContextType>;
  rawState?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  resourceCount?: Resolver<Maybe<ResolversTypes['Int']>, ParentType, ContextType>;
  serial?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  sha256?: Resolver<Maybe<ResolversTypes['Sha256']>, ParentType, ContextType>;
  sizeBytes?: Resolver<Maybe<ResolversTypes['BigInt']>, ParentType, ContextType>;
  source?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  tags?: Resolver<Maybe<ReadonlyArray<ResolversTypes['StateArchiveTag']>>, ParentType, ContextType>;
  terraformVersion?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
};

export type StateArchiveVersionConnectionResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveVersionConnection'] = ResolversParentTypes['StateArchiveVersionConnection']> = {
  edges?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveVersionEdge']>, ParentType, ContextType>;
  nodes?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveVersion']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
  totalCount?: Resolver<ResolversTypes['Int'], ParentType, ContextType>;
};

export type StateArchiveVersionEdgeResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveVersionEdge'] = ResolversParentTypes['StateArchiveVersionEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['StateArchiveVersion'], ParentType, ContextType>;
};

export type StateArchiveVersionMappingResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveVersionMapping'] = ResolversParentTypes['StateArchiveVersionMapping']> = {
  serial?: Resolver<ResolversTypes['BigInt'], ParentType, ContextType>;
  sourceVersionId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  versionId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
};

export type StateArchiveVersionMappingConnectionResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveVersionMappingConnection'] = ResolversParentTypes['StateArchiveVersionMappingConnection']> = {
  edges?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveVersionMappingEdge']>, ParentType, ContextType>;
  nodes?: Resolver<ReadonlyArray<ResolversTypes['StateArchiveVersionMapping']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type StateArchiveVersionMappingEdgeResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveVersionMappingEdge'] = ResolversParentTypes['StateArchiveVersionMappingEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['StateArchiveVersionMapping'], ParentType, ContextType>;
};

export type StateArchiveWarningResolvers<ContextType = GraphqlContext, ParentType extends ResolversParentTypes['StateArchiveWarning'] = ResolversParentTypes['StateArchiveWarning']> = {
  code?: Resolver<Maybe<ResolversTypes['StateArchiveWarningCode']>, ParentType, ContextType>;
  message?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  serial?: Resolver<Maybe<ResolversTypes['BigInt']>, ParentType, ContextType>;
};

export interface UploadScalarConfig extends GraphQLScalarTypeConfig<ResolversTypes['Upload'], any> {
  name: 'Upload';
}

export type Resolvers<ContextType = GraphqlContext> = {
  BigInt?: GraphQLScalarType;
  CancelStateArchiveOperationPayload?: CancelStateArchiveOperationPayloadResolvers<ContextType>;
  DateTime?: GraphQLScalarType;
  ExportStateArchivePayload?: ExportStateArchivePayloadResolvers<ContextType>;
  ImportStateArchivePayload?: ImportStateArchivePayloadResolvers<ContextType>;
  ImportStateSnapshotPayload?: ImportStateSnapshotPayloadResolvers<ContextType>;
  Mutation?: MutationResolvers<ContextType>;
  PageInfo?: PageInfoResolvers<ContextType>;
  Query?: QueryResolvers<ContextType>;
  SetStateArchiveLegalHoldPayload?: SetStateArchiveLegalHoldPayloadResolvers<ContextType>;
  Sha256?: GraphQLScalarType;
  StageStateArchiveUploadPayload?: StageStateArchiveUploadPayloadResolvers<ContextType>;
  State?: StateResolvers<ContextType>;
  StateArchive?: StateArchiveResolvers<ContextType>;
  StateArchiveCaller?: StateArchiveCallerResolvers<ContextType>;
  StateArchiveChanges?: StateArchiveChangesResolvers<ContextType>;
  StateArchiveConnection?: StateArchiveConnectionResolvers<ContextType>;
  StateArchiveEdge?: StateArchiveEdgeResolvers<ContextType>;
  StateArchiveFile?: StateArchiveFileResolvers<ContextType>;
  StateArchiveImportReport?: StateArchiveImportReportResolvers<ContextType>;
  StateArchiveManifest?: StateArchiveManifestResolvers<ContextType>;
  StateArchiveOperation?: StateArchiveOperationResolvers<ContextType>;
  StateArchiveOperationConnection?: StateArchiveOperationConnectionResolvers<ContextType>;
  StateArchiveOperationEdge?: StateArchiveOperationEdgeResolvers<ContextType>;
  StateArchiveOperationProgress?: StateArchiveOperationProgressResolvers<ContextType>;
  StateArchiveSignature?: StateArchiveSignatureResolvers<ContextType>;
  StateArchiveStatus?: StateArchiveStatusResolvers<ContextType>;
  StateArchiveTag?: StateArchiveTagResolvers<ContextType>;
  StateArchiveUpload?: StateArchiveUploadResolvers<ContextType>;
  StateArchiveUploadHeader?: StateArchiveUploadHeaderResolvers<ContextType>;
  StateArchiveUserError?: StateArchiveUserErrorResolvers<ContextType>;
  StateArchiveVersion?: StateArchiveVersionResolvers<ContextType>;
  StateArchiveVersionConnection?: StateArchiveVersionConnectionResolvers<ContextType>;
  StateArchiveVersionEdge?: StateArchiveVersionEdgeResolvers<ContextType>;
  StateArchiveVersionMapping?: StateArchiveVersionMappingResolvers<ContextType>;
  StateArchiveVersionMappingConnection?: StateArchiveVersionMappingConnectionResolvers<ContextType>;
  StateArchiveVersionMappingEdge?: StateArchiveVersionMappingEdgeResolvers<ContextType>;
  StateArchiveWarning?: StateArchiveWarningResolvers<ContextType>;
  Upload?: GraphQLScalarType;
};

