import type { GraphQLResolveInfo, GraphQLScalarType, GraphQLScalarTypeConfig } from 'graphql';
import type { StateParent, StateArchiveParent, VersionParent, OperationParent, FileParent } from './parents.ts';
import type { VersionContents, TagRecord } from '../history/versions.ts';
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
  BigInt: { input: bigint; output: bigint; }
  DateTime: { input: string; output: string; }
  Sha256: { input: string; output: string; }
  Upload: { input: Promise<import('../http/upload.ts').FileUpload>; output: Promise<import('../http/upload.ts').FileUpload>; }
  _FieldSet: { input: string; output: string; }
};

export type CancelStateArchiveOperationInput = {
  readonly id: Scalars['ID']['input'];
  readonly scope?: InputMaybe<StateScopeInput>;
};

export type CancelStateArchiveOperationPayload = {
  readonly operation: Maybe<StateArchiveOperation>;
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

export type ExportStateArchiveInput = {
  readonly discloseHistoryDigest: Scalars['Boolean']['input'];
  readonly idempotencyKey?: InputMaybe<Scalars['String']['input']>;
  readonly legalHold: Scalars['Boolean']['input'];
  readonly name: Scalars['String']['input'];
  readonly recipients: ReadonlyArray<Scalars['String']['input']>;
  readonly retainUntil?: InputMaybe<Scalars['DateTime']['input']>;
  readonly scope?: InputMaybe<StateScopeInput>;
  readonly waitSeconds: Scalars['Int']['input'];
};

export type ExportStateArchivePayload = {
  readonly operation: Maybe<StateArchiveOperation>;
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

export type ImportStateArchiveInput = {
  readonly allowSharedLineage: Scalars['Boolean']['input'];
  readonly confirmName?: InputMaybe<Scalars['String']['input']>;
  readonly dryRun: Scalars['Boolean']['input'];
  readonly expectedCurrentSerial?: InputMaybe<Scalars['BigInt']['input']>;
  readonly expectedSha256?: InputMaybe<Scalars['Sha256']['input']>;
  readonly file?: InputMaybe<Scalars['Upload']['input']>;
  readonly idempotencyKey?: InputMaybe<Scalars['String']['input']>;
  readonly name?: InputMaybe<Scalars['String']['input']>;
  readonly onConflict: StateArchiveConflictPolicy;
  readonly scope?: InputMaybe<StateScopeInput>;
  readonly uploadId?: InputMaybe<Scalars['ID']['input']>;
  readonly waitSeconds: Scalars['Int']['input'];
};

export type ImportStateArchivePayload = {
  readonly operation: Maybe<StateArchiveOperation>;
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

export type ImportStateSnapshotInput = {
  readonly document?: InputMaybe<Scalars['String']['input']>;
  readonly file?: InputMaybe<Scalars['Upload']['input']>;
  readonly idempotencyKey?: InputMaybe<Scalars['String']['input']>;
  readonly name: Scalars['String']['input'];
  readonly scope?: InputMaybe<StateScopeInput>;
  readonly source?: InputMaybe<Scalars['String']['input']>;
};

export type ImportStateSnapshotPayload = {
  readonly stateArchive: Maybe<StateArchive>;
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
  readonly version: Maybe<StateArchiveVersion>;
};

export type Mutation = {
  readonly cancelStateArchiveOperation: Maybe<CancelStateArchiveOperationPayload>;
  readonly exportStateArchive: Maybe<ExportStateArchivePayload>;
  readonly importStateArchive: Maybe<ImportStateArchivePayload>;
  readonly importStateSnapshot: Maybe<ImportStateSnapshotPayload>;
  readonly setStateArchiveLegalHold: Maybe<SetStateArchiveLegalHoldPayload>;
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

export type PageInfo = {
  readonly endCursor: Maybe<Scalars['String']['output']>;
  readonly hasNextPage: Scalars['Boolean']['output'];
  readonly hasPreviousPage: Scalars['Boolean']['output'];
  readonly startCursor: Maybe<Scalars['String']['output']>;
};

export type Query = {
  readonly stateArchive: Maybe<StateArchive>;
  readonly stateArchiveCaller: Maybe<StateArchiveCaller>;
  readonly stateArchiveOperation: Maybe<StateArchiveOperation>;
  readonly stateArchiveOperations: Maybe<StateArchiveOperationConnection>;
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

export type SetStateArchiveLegalHoldInput = {
  readonly id: Scalars['ID']['input'];
  readonly legalHold: Scalars['Boolean']['input'];
  readonly scope?: InputMaybe<StateScopeInput>;
};

export type SetStateArchiveLegalHoldPayload = {
  readonly operation: Maybe<StateArchiveOperation>;
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

export type StageStateArchiveUploadInput = {
  readonly byteLength: Scalars['BigInt']['input'];
  readonly fileName?: InputMaybe<Scalars['String']['input']>;
  readonly scope?: InputMaybe<StateScopeInput>;
  readonly sha256: Scalars['Sha256']['input'];
};

export type StageStateArchiveUploadPayload = {
  readonly upload: Maybe<StateArchiveUpload>;
  readonly userErrors: ReadonlyArray<StateArchiveUserError>;
};

export type State = {
  readonly archive: Maybe<StateArchive>;
  readonly id: Scalars['ID']['output'];
};

export type StateArchive = {
  readonly createdAt: Maybe<Scalars['DateTime']['output']>;
  readonly environmentId: Scalars['ID']['output'];
  readonly id: Scalars['ID']['output'];
  readonly lifecycleStatus: StateLifecycleStatus;
  readonly lineage: Maybe<Scalars['ID']['output']>;
  readonly manifest: Maybe<StateArchiveManifest>;
  readonly name: Scalars['String']['output'];
  readonly operations: Maybe<StateArchiveOperationConnection>;
  readonly status: StateArchiveStatus;
  readonly tags: Maybe<ReadonlyArray<StateArchiveTag>>;
  readonly updatedAt: Maybe<Scalars['DateTime']['output']>;
  readonly version: Maybe<StateArchiveVersion>;
  readonly versions: Maybe<StateArchiveVersionConnection>;
  readonly workspaceId: Scalars['ID']['output'];
};


export type StateArchiveOperationsArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  first?: Scalars['Int']['input'];
};


export type StateArchiveVersionArgs = {
  serial: InputMaybe<Scalars['BigInt']['input']>;
  tag: InputMaybe<Scalars['String']['input']>;
};


export type StateArchiveVersionsArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  first?: Scalars['Int']['input'];
};

export type StateArchiveCaller = {
  readonly actor: Scalars['String']['output'];
  readonly environmentId: Maybe<Scalars['ID']['output']>;
  readonly expiresAt: Maybe<Scalars['DateTime']['output']>;
  readonly scopes: ReadonlyArray<Scalars['String']['output']>;
  readonly statePatterns: Maybe<ReadonlyArray<Scalars['String']['output']>>;
  readonly subject: Scalars['String']['output'];
  readonly workspaceId: Maybe<Scalars['ID']['output']>;
};

export type StateArchiveChanges = {
  readonly added: Scalars['Int']['output'];
  readonly changed: Scalars['Int']['output'];
  readonly removed: Scalars['Int']['output'];
};

export type StateArchiveConflictPolicy =
  | 'ARCHIVED_COPY'
  | 'OVERWRITE'
  | 'REFUSE';

export type StateArchiveConnection = {
  readonly edges: ReadonlyArray<StateArchiveEdge>;
  readonly nodes: ReadonlyArray<StateArchive>;
  readonly pageInfo: PageInfo;
};

export type StateArchiveEdge = {
  readonly cursor: Scalars['String']['output'];
  readonly node: StateArchive;
};

export type StateArchiveErrorCode =
  | 'ARCHIVE_CORRUPT'
  | 'ARCHIVE_DIGEST_MISMATCH'
  | 'ARCHIVE_ENCRYPTED'
  | 'ARCHIVE_INCONSISTENT'
  | 'ARCHIVE_NOT_KEPT'
  | 'ARCHIVE_REDACTED'
  | 'ARCHIVE_TOO_LARGE'
  | 'ARCHIVE_TRUNCATED'
  | 'ARCHIVE_UNSAFE'
  | 'ARCHIVE_UNSUPPORTED_FORMAT'
  | 'CONFIRMATION_MISMATCH'
  | 'FORBIDDEN'
  | 'HISTORY_INCONSISTENT'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'INTERNAL'
  | 'INVALID_INPUT'
  | 'LINEAGE_IN_USE'
  | 'OPERATION_INTERRUPTED'
  | 'OPERATION_NOT_CANCELLABLE'
  | 'OPERATION_NOT_FOUND'
  | 'QUOTA_EXCEEDED'
  | 'RETENTION_UNSUPPORTED'
  | 'SIGNATURE_INVALID'
  | 'SIGNATURE_REQUIRED'
  | 'STALE_DESTINATION'
  | 'STATE_ALREADY_EXISTS'
  | 'STATE_AMBIGUOUS'
  | 'STATE_EMPTY'
  | 'STATE_LOCKED'
  | 'STATE_NOT_ACTIVE'
  | 'STATE_NOT_FOUND'
  | 'TOO_MANY_OPERATIONS'
  | 'UNSUPPORTED_STATE_DOCUMENT'
  | 'UPLOAD_EXPIRED'
  | 'UPLOAD_INCOMPLETE';

export type StateArchiveFile = {
  readonly downloadUrl: Maybe<Scalars['String']['output']>;
  readonly fileName: Scalars['String']['output'];
  readonly historyDigest: Scalars['Sha256']['output'];
  readonly legalHold: Scalars['Boolean']['output'];
  readonly retainUntil: Maybe<Scalars['DateTime']['output']>;
  readonly sha256: Scalars['Sha256']['output'];
  readonly sizeBytes: Scalars['BigInt']['output'];
};

export type StateArchiveFilter = {
  readonly namePrefix?: InputMaybe<Scalars['String']['input']>;
};

export type StateArchiveImportOutcome =
  | 'ARCHIVED_COPY'
  | 'CREATED'
  | 'REPLACED';

export type StateArchiveImportReport = {
  readonly dryRun: Scalars['Boolean']['output'];
  readonly eventCount: Scalars['Int']['output'];
  readonly historyDigest: Scalars['Sha256']['output'];
  readonly name: Scalars['String']['output'];
  readonly normalisedVersionCount: Scalars['Int']['output'];
  readonly outcome: StateArchiveImportOutcome;
  readonly outputCount: Scalars['Int']['output'];
  readonly rawBytes: Scalars['BigInt']['output'];
  readonly replacedVersionCount: Scalars['Int']['output'];
  readonly resourceSpanCount: Scalars['Int']['output'];
  readonly resourceSpansDerived: Scalars['Boolean']['output'];
  readonly signature: Maybe<StateArchiveSignature>;
  readonly sourceName: Scalars['String']['output'];
  readonly sourceStateId: Scalars['ID']['output'];
  readonly tagCount: Scalars['Int']['output'];
  readonly versionCount: Scalars['Int']['output'];
  readonly warnings: ReadonlyArray<StateArchiveWarning>;
};

export type StateArchiveManifest = {
  readonly archiveFormat: Scalars['String']['output'];
  readonly currentSerial: Scalars['BigInt']['output'];
  readonly currentVersionId: Scalars['ID']['output'];
  readonly eventCount: Scalars['Int']['output'];
  readonly firstCreatedAt: Scalars['DateTime']['output'];
  readonly firstSerial: Scalars['BigInt']['output'];
  readonly historyDigest: Scalars['Sha256']['output'];
  readonly lastCreatedAt: Scalars['DateTime']['output'];
  readonly lastSerial: Scalars['BigInt']['output'];
  readonly lineage: Maybe<Scalars['ID']['output']>;
  readonly name: Scalars['String']['output'];
  readonly rawBytes: Scalars['BigInt']['output'];
  readonly resourceSpanCount: Scalars['Int']['output'];
  readonly sources: ReadonlyArray<Scalars['String']['output']>;
  readonly tagCount: Scalars['Int']['output'];
  readonly terraformVersions: ReadonlyArray<Scalars['String']['output']>;
  readonly versionCount: Scalars['Int']['output'];
};

export type StateArchiveOperation = {
  readonly actor: Scalars['String']['output'];
  readonly archive: Maybe<StateArchiveFile>;
  readonly createdAt: Scalars['DateTime']['output'];
  readonly error: Maybe<StateArchiveUserError>;
  readonly expiresAt: Maybe<Scalars['DateTime']['output']>;
  readonly finishedAt: Maybe<Scalars['DateTime']['output']>;
  readonly id: Scalars['ID']['output'];
  readonly kind: StateArchiveOperationKind;
  readonly name: Scalars['String']['output'];
  readonly progress: StateArchiveOperationProgress;
  readonly replaced: Maybe<StateArchiveOperation>;
  readonly report: Maybe<StateArchiveImportReport>;
  readonly startedAt: Maybe<Scalars['DateTime']['output']>;
  readonly stateArchive: Maybe<StateArchive>;
  readonly status: StateArchiveOperationStatus;
  readonly versionMapping: Maybe<StateArchiveVersionMappingConnection>;
};


export type StateArchiveOperationVersionMappingArgs = {
  after: InputMaybe<Scalars['String']['input']>;
  first?: Scalars['Int']['input'];
};

export type StateArchiveOperationConnection = {
  readonly edges: ReadonlyArray<StateArchiveOperationEdge>;
  readonly nodes: ReadonlyArray<StateArchiveOperation>;
  readonly pageInfo: PageInfo;
};

export type StateArchiveOperationEdge = {
  readonly cursor: Scalars['String']['output'];
  readonly node: StateArchiveOperation;
};

export type StateArchiveOperationFilter = {
  readonly actor?: InputMaybe<Scalars['String']['input']>;
  readonly kind?: InputMaybe<StateArchiveOperationKind>;
  readonly namePrefix?: InputMaybe<Scalars['String']['input']>;
  readonly since?: InputMaybe<Scalars['DateTime']['input']>;
  readonly status?: InputMaybe<ReadonlyArray<StateArchiveOperationStatus>>;
};

export type StateArchiveOperationKind =
  | 'EXPORT'
  | 'IMPORT';

export type StateArchiveOperationProgress = {
  readonly bytesDone: Scalars['BigInt']['output'];
  readonly bytesTotal: Maybe<Scalars['BigInt']['output']>;
  readonly versionsDone: Scalars['Int']['output'];
  readonly versionsTotal: Maybe<Scalars['Int']['output']>;
};

export type StateArchiveOperationStatus =
  | 'CANCELLED'
  | 'EXPIRED'
  | 'FAILED'
  | 'PENDING'
  | 'RUNNING'
  | 'SUCCEEDED';

export type StateArchiveSignature = {
  readonly keyIds: ReadonlyArray<Scalars['String']['output']>;
  readonly verified: Scalars['Boolean']['output'];
};

export type StateArchiveStatus = {
  readonly exportable: Scalars['Boolean']['output'];
  readonly lastExport: Maybe<StateArchiveOperation>;
  readonly lastImport: Maybe<StateArchiveOperation>;
  readonly lockedBy: Maybe<Scalars['String']['output']>;
  readonly versionCount: Maybe<Scalars['Int']['output']>;
};

export type StateArchiveTag = {
  readonly actor: Scalars['String']['output'];
  readonly createdAt: Maybe<Scalars['DateTime']['output']>;
  readonly description: Maybe<Scalars['String']['output']>;
  readonly name: Scalars['String']['output'];
  readonly serial: Scalars['BigInt']['output'];
  readonly updatedAt: Maybe<Scalars['DateTime']['output']>;
};

export type StateArchiveUpload = {
  readonly expiresAt: Scalars['DateTime']['output'];
  readonly headers: ReadonlyArray<StateArchiveUploadHeader>;
  readonly id: Scalars['ID']['output'];
  readonly method: Scalars['String']['output'];
  readonly url: Scalars['String']['output'];
};

export type StateArchiveUploadHeader = {
  readonly name: Scalars['String']['output'];
  readonly value: Scalars['String']['output'];
};

export type StateArchiveUserError = {
  readonly code: StateArchiveErrorCode;
  readonly message: Scalars['String']['output'];
  readonly path: Maybe<ReadonlyArray<Scalars['String']['output']>>;
};

export type StateArchiveVersion = {
  readonly changes: Maybe<StateArchiveChanges>;
  readonly createdAt: Maybe<Scalars['DateTime']['output']>;
  readonly createdBy: Maybe<Scalars['String']['output']>;
  readonly id: Scalars['ID']['output'];
  readonly isCurrent: Scalars['Boolean']['output'];
  readonly outputNames: Maybe<ReadonlyArray<Scalars['String']['output']>>;
  readonly rawState: Maybe<Scalars['String']['output']>;
  readonly resourceCount: Maybe<Scalars['Int']['output']>;
  readonly serial: Scalars['BigInt']['output'];
  readonly sha256: Maybe<Scalars['Sha256']['output']>;
  readonly sizeBytes: Maybe<Scalars['BigInt']['output']>;
  readonly source: Scalars['String']['output'];
  readonly tags: Maybe<ReadonlyArray<StateArchiveTag>>;
  readonly terraformVersion: Maybe<Scalars['String']['output']>;
};

export type StateArchiveVersionConnection = {
  readonly edges: ReadonlyArray<StateArchiveVersionEdge>;
  readonly nodes: ReadonlyArray<StateArchiveVersion>;
  readonly pageInfo: PageInfo;
  readonly totalCount: Scalars['Int']['output'];
};

export type StateArchiveVersionEdge = {
  readonly cursor: Scalars['String']['output'];
  readonly node: StateArchiveVersion;
};

export type StateArchiveVersionMapping = {
  readonly serial: Scalars['BigInt']['output'];
  readonly sourceVersionId: Scalars['ID']['output'];
  readonly versionId: Scalars['ID']['output'];
};

export type StateArchiveVersionMappingConnection = {
  readonly edges: ReadonlyArray<StateArchiveVersionMappingEdge>;
  readonly nodes: ReadonlyArray<StateArchiveVersionMapping>;
  readonly pageInfo: PageInfo;
};

export type StateArchiveVersionMappingEdge = {
  readonly cursor: Scalars['String']['output'];
  readonly node: StateArchiveVersionMapping;
};

export type StateArchiveWarning = {
  readonly code: Maybe<StateArchiveWarningCode>;
  readonly message: Scalars['String']['output'];
  readonly serial: Maybe<Scalars['BigInt']['output']>;
};

export type StateArchiveWarningCode =
  | 'ADDRESS_REPEATED'
  | 'ATTESTATION_NOT_VERIFIED'
  | 'CURRENT_IS_NOT_LAST'
  | 'DEPOSED_INSTANCE'
  | 'LINEAGE_MISMATCH'
  | 'LOCK_POLICY_CHANGED'
  | 'RAW_STATES_NORMALISED'
  | 'RESOURCE_HASHES_KEPT'
  | 'RESOURCE_SPANS_DERIVED'
  | 'SERIAL_MISMATCH'
  | 'UNKNOWN_FIELDS';

export type StateLifecycleStatus =
  | 'ACTIVE'
  | 'ARCHIVED'
  | 'SUSPENDED';

export type StateScopeInput = {
  readonly environmentId: Scalars['ID']['input'];
  readonly reason?: InputMaybe<Scalars['String']['input']>;
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
    
export type Resolver<TResult, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> = ResolverFn<TResult, TParent, TContext, TArgs>;

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
  StateArchiveTag: ResolverTypeWrapper<TagRecord>;
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
  StateArchiveTag: TagRecord;
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

