/**
 * @file Everything that `kl` asks the service, with the shapes of the answers. A test holds the documents against the schema;
 * the shapes are what the documents select.
 */

/** A file of an operation. */
export interface FileAnswer {
  readonly sha256: string;
  readonly sizeBytes: string;
  readonly historyDigest: string;
  readonly fileName: string;
}

/** A problem that the service told. */
export interface UserError {
  readonly code: string;
  readonly message: string;
}

/** An operation, wherever it is listed. */
export interface OperationAnswer {
  readonly id: string;
  readonly kind: 'EXPORT' | 'IMPORT';
  readonly name: string;
  readonly status: 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';
  readonly progress: {
    readonly versionsDone: number;
    readonly versionsTotal: number | null;
    readonly bytesDone: string;
    readonly bytesTotal: string | null;
  };
  readonly actor: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly expiresAt: string | null;
  readonly archive: FileAnswer | null;
  readonly error: UserError | null;
}

/** What an import did, or would do. */
export interface ReportAnswer {
  readonly dryRun: boolean;
  readonly outcome: 'CREATED' | 'ARCHIVED_COPY' | 'REPLACED';
  readonly name: string;
  readonly replacedVersionCount: number;
  readonly sourceName: string;
  readonly versionCount: number;
  readonly tagCount: number;
  readonly eventCount: number;
  readonly resourceSpanCount: number;
  readonly resourceSpansDerived: boolean;
  readonly outputCount: number;
  readonly rawBytes: string;
  readonly historyDigest: string;
  readonly normalisedVersionCount: number;
  readonly warnings: readonly {
    readonly code: string | null;
    readonly message: string;
    readonly serial: string | null;
  }[];
}

/** An import, with its report. */
export interface ImportAnswer extends OperationAnswer {
  readonly report: ReportAnswer | null;
  /** The state restored; null while there is none, or when the credential may not see it. */
  readonly stateArchive: Address | null;
}

/** Where a state is to be found in Kilolock. */
export interface Address {
  readonly name: string;
  readonly workspaceId: string;
  readonly environmentId: string;
}

/** What an export taken now would hold. */
export interface ManifestAnswer {
  readonly versionCount: number;
  readonly tagCount: number;
  readonly rawBytes: string;
  readonly currentSerial: string;
  readonly historyDigest: string;
}

/** A state in short. */
export interface StateAnswer {
  readonly name: string;
  readonly lineage: string | null;
  readonly lifecycleStatus: string;
  readonly status: {
    readonly exportable: boolean;
    readonly lockedBy: string | null;
    readonly versionCount: number | null;
    readonly lastExport: OperationAnswer | null;
    readonly lastImport: OperationAnswer | null;
  };
  readonly manifest: ManifestAnswer | null;
}

/** A page of a list. */
export interface Page<Item> {
  readonly nodes: readonly Item[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

const OPERATION = `
  id kind name status actor createdAt finishedAt expiresAt
  progress { versionsDone versionsTotal bytesDone bytesTotal }
  archive { sha256 sizeBytes historyDigest fileName }
  error { code message }
`;
const REPORT = `
  stateArchive { name workspaceId environmentId }
  report {
    dryRun outcome name replacedVersionCount sourceName versionCount tagCount eventCount resourceSpanCount
    resourceSpansDerived outputCount rawBytes historyDigest normalisedVersionCount
    warnings { code message serial }
  }
`;
const MANIFEST = 'manifest { versionCount tagCount rawBytes currentSerial historyDigest }';
const STATE = `
  name lineage lifecycleStatus ${MANIFEST}
  status { exportable lockedBy versionCount lastExport { ${OPERATION} } lastImport { ${OPERATION} } }
`;

/** By the names of the functions and commands that send them. */
export const DOCUMENTS = {
  history: `query ($name: String!, $scope: StateScopeInput) { stateArchive(name: $name, scope: $scope) { name ${MANIFEST} } }`,
  state: `query ($name: String!, $scope: StateScopeInput) { stateArchive(name: $name, scope: $scope) { ${STATE} } }`,
  states: `query ($prefix: String, $after: String, $scope: StateScopeInput) {
    stateArchives(first: 20, after: $after, filter: { namePrefix: $prefix }, scope: $scope) {
      nodes { ${STATE} }
      pageInfo { hasNextPage endCursor }
    }
  }`,
  operation: `query ($id: ID!, $scope: StateScopeInput) { stateArchiveOperation(id: $id, scope: $scope) { ${OPERATION} ${REPORT} } }`,
  operations: `query ($first: Int!, $filter: StateArchiveOperationFilter, $scope: StateScopeInput) {
    stateArchiveOperations(first: $first, filter: $filter, scope: $scope) { nodes { ${OPERATION} } }
  }`,
  link: `query ($id: ID!, $scope: StateScopeInput) {
    stateArchiveOperation(id: $id, scope: $scope) { archive { downloadUrl } }
  }`,
  exportState: `mutation ($name: String!, $key: String!, $scope: StateScopeInput) {
    exportStateArchive(input: { name: $name, scope: $scope, waitSeconds: 1, idempotencyKey: $key }) {
      operation { ${OPERATION} }
      userErrors { code message }
    }
  }`,
  exportSealedState: `mutation (
    $name: String!, $key: String!, $recipients: [String!]!, $discloseHistoryDigest: Boolean!, $scope: StateScopeInput
  ) {
    exportStateArchive(input: {
      name: $name, scope: $scope, waitSeconds: 1, idempotencyKey: $key, recipients: $recipients,
      discloseHistoryDigest: $discloseHistoryDigest
    }) {
      operation { ${OPERATION} }
      userErrors { code message }
    }
  }`,
  stage: `mutation ($byteLength: BigInt!, $sha256: Sha256!, $fileName: String, $scope: StateScopeInput) {
    stageStateArchiveUpload(
      input: { byteLength: $byteLength, sha256: $sha256, fileName: $fileName, scope: $scope }
    ) {
      upload { id url }
      userErrors { code message }
    }
  }`,
  importArchive: `mutation (
    $uploadId: ID!, $name: String, $onConflict: StateArchiveConflictPolicy!, $confirmName: String,
    $expectedCurrentSerial: BigInt, $allowSharedLineage: Boolean!, $dryRun: Boolean!, $expectedSha256: Sha256!, $key: String!,
    $scope: StateScopeInput
  ) {
    importStateArchive(input: {
      uploadId: $uploadId, name: $name, scope: $scope, onConflict: $onConflict, confirmName: $confirmName,
      expectedCurrentSerial: $expectedCurrentSerial, allowSharedLineage: $allowSharedLineage, dryRun: $dryRun,
      expectedSha256: $expectedSha256, waitSeconds: 1, idempotencyKey: $key
    }) {
      operation { ${OPERATION} ${REPORT} }
      userErrors { code message }
    }
  }`,
  caller: `{
    stateArchiveCaller { subject actor scopes workspaceId environmentId statePatterns expiresAt }
  }`,
  cancel: `mutation ($id: ID!, $scope: StateScopeInput) {
    cancelStateArchiveOperation(input: { id: $id, scope: $scope }) { operation { ${OPERATION} ${REPORT} } userErrors { code message } }
  }`,
  importSnapshot: `mutation ($file: Upload!, $name: String!, $key: String!, $scope: StateScopeInput) {
    importStateSnapshot(input: { file: $file, name: $name, scope: $scope, idempotencyKey: $key }) {
      stateArchive { name workspaceId environmentId }
      version { id serial createdAt sha256 }
      userErrors { code message }
    }
  }`,
} as const;
