/**
 * @file Everything that `kl` asks the service, with the shapes of the answers. A test holds the documents against the schema;
 * the shapes are what the documents select.
 */

/** A document with one field at its root, and what that field answers. Problems in it are the service's to refuse. */
export type Document<Answer> = string & { readonly answer?: Answer };

/** A document, once it is said what is answered. */
export function asks<Answer>(document: string): Document<Answer> {
  return document;
}

/** A file of an operation. */
export interface FileAnswer {
  readonly sha256: string;
  readonly sizeBytes: string;
  readonly historyDigest: string;
  readonly fileName: string;
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
  readonly error: { readonly code: string; readonly message: string } | null;
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

/** What was begun, or called off; null: nothing, and the service has said why. */
interface Asked<Operation> {
  readonly operation: Operation | null;
}

/** A page of a list. */
export interface Page<Item> {
  readonly nodes: readonly Item[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

/** An upload that the service waits for. */
export interface Announced {
  readonly id: string;
  /** A secret: whoever has it may send. */
  readonly url: string;
}

/** Who a credential is, and what it may. */
export interface CallerAnswer {
  readonly subject: string;
  readonly actor: string;
  readonly scopes: readonly string[];
  readonly workspaceId: string | null;
  readonly environmentId: string | null;
  readonly statePatterns: readonly string[] | null;
  readonly expiresAt: string | null;
}

const OPERATION = `
  id kind name status actor createdAt finishedAt expiresAt
  progress { versionsDone versionsTotal bytesDone bytesTotal }
  archive { sha256 sizeBytes historyDigest fileName }
  error { code message }
`;
const IMPORT = `
  ${OPERATION}
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

const ofState = (selection: string) =>
  `query ($name: String!, $scope: StateScopeInput) { stateArchive(name: $name, scope: $scope) { ${selection} } }`;
const ofOperation = (selection: string) =>
  `query ($id: ID!, $scope: StateScopeInput) { stateArchiveOperation(id: $id, scope: $scope) { ${selection} } }`;
const mutation = (field: string, input: string, selection: string) =>
  `mutation ($input: ${input}!) { ${field}(input: $input) { ${selection} userErrors { code message } } }`;

/** By the names of the functions and commands that send them. What is not there, or not for the credential, is null. */
export const DOCUMENTS = {
  history: asks<Pick<StateAnswer, 'manifest'> | null>(ofState(MANIFEST)),
  state: asks<StateAnswer | null>(ofState(STATE)),
  states: asks<Page<StateAnswer>>(`query ($prefix: String, $after: String, $scope: StateScopeInput) {
    stateArchives(first: 20, after: $after, filter: { namePrefix: $prefix }, scope: $scope) {
      nodes { ${STATE} }
      pageInfo { hasNextPage endCursor }
    }
  }`),
  operation: asks<ImportAnswer | null>(ofOperation(IMPORT)),
  link: asks<{ readonly archive: { readonly downloadUrl: string | null } | null } | null>(
    ofOperation('archive { downloadUrl }'),
  ),
  operations: asks<Pick<Page<OperationAnswer>, 'nodes'>>(
    `query ($first: Int!, $filter: StateArchiveOperationFilter, $scope: StateScopeInput) {
      stateArchiveOperations(first: $first, filter: $filter, scope: $scope) { nodes { ${OPERATION} } }
    }`,
  ),
  caller: asks<CallerAnswer | null>(
    '{ stateArchiveCaller { subject actor scopes workspaceId environmentId statePatterns expiresAt } }',
  ),
  exportState: asks<Asked<OperationAnswer>>(
    mutation('exportStateArchive', 'ExportStateArchiveInput', `operation { ${OPERATION} }`),
  ),
  stage: asks<{ readonly upload: Announced | null }>(
    mutation('stageStateArchiveUpload', 'StageStateArchiveUploadInput', 'upload { id url }'),
  ),
  importArchive: asks<Asked<ImportAnswer>>(
    mutation('importStateArchive', 'ImportStateArchiveInput', `operation { ${IMPORT} }`),
  ),
  cancel: asks<Asked<ImportAnswer>>(
    mutation('cancelStateArchiveOperation', 'CancelStateArchiveOperationInput', `operation { ${IMPORT} }`),
  ),
  importSnapshot: asks<{
    readonly stateArchive: Address | null;
    readonly version: { readonly id: string; readonly serial: string; readonly createdAt: string } | null;
  }>(
    mutation(
      'importStateSnapshot',
      'ImportStateSnapshotInput',
      'stateArchive { name workspaceId environmentId } version { id serial createdAt sha256 }',
    ),
  ),
};
