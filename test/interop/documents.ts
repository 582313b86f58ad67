/** @file The GraphQL documents that the checks send, and what each is answered. */

const OPERATION = `fragment Operation on StateArchiveOperation {
  id kind status actor
  archive { sha256 sizeBytes historyDigest fileName downloadUrl }
  report {
    dryRun outcome name replacedVersionCount sourceName sourceStateId versionCount tagCount eventCount resourceSpanCount
    resourceSpansDerived outputCount rawBytes historyDigest normalisedVersionCount warnings { code message serial }
  }
  error { code message }
  stateArchive { id name }
  replaced { id status archive { historyDigest downloadUrl } }
}`;

export const EXPORT = `mutation ($name: String!, $scope: StateScopeInput) {
  exportStateArchive(input: { name: $name, scope: $scope, waitSeconds: 25 }) {
    operation { ...Operation }
    userErrors { code message path }
  }
}
${OPERATION}`;

export const IMPORT = `mutation (
  $file: Upload!, $name: String, $scope: StateScopeInput, $onConflict: StateArchiveConflictPolicy! = REFUSE
  $confirmName: String, $expectedCurrentSerial: BigInt, $allowSharedLineage: Boolean! = false, $dryRun: Boolean! = false
) {
  importStateArchive(input: {
    file: $file, name: $name, scope: $scope, onConflict: $onConflict, confirmName: $confirmName
    expectedCurrentSerial: $expectedCurrentSerial, allowSharedLineage: $allowSharedLineage, dryRun: $dryRun
    waitSeconds: 25
  }) {
    operation { ...Operation }
    userErrors { code message path }
  }
}
${OPERATION}`;

export const SNAPSHOT = `mutation ($name: String!, $document: String!) {
  importStateSnapshot(input: { name: $name, document: $document }) {
    version { serial source }
    userErrors { code message }
  }
}`;

export const PREVIEW = `query ($name: String!, $scope: StateScopeInput) {
  stateArchive(name: $name, scope: $scope) {
    id name workspaceId environmentId lineage lifecycleStatus
    status { exportable lockedBy versionCount lastExport { id } lastImport { id } }
    manifest {
      archiveFormat name lineage currentSerial currentVersionId firstSerial lastSerial versionCount tagCount eventCount
      resourceSpanCount rawBytes historyDigest sources terraformVersions firstCreatedAt lastCreatedAt
    }
  }
}`;

export const VERSIONS = `query ($name: String!) {
  stateArchive(name: $name) {
    versions(first: 100) {
      totalCount
      nodes {
        serial isCurrent terraformVersion source createdBy sizeBytes sha256 resourceCount outputNames
        changes { added changed removed }
      }
    }
  }
}`;

export const RAW_STATES = `query ($name: String!) {
  stateArchive(name: $name) { versions(first: 3) { nodes { serial isCurrent rawState } } }
}`;

export const VERSION_MAPPING = `query ($name: String!) {
  stateArchive(name: $name) {
    status { lastImport { versionMapping(first: 1000) { nodes { serial sourceVersionId versionId } } } }
  }
}`;

export const LIST = '{ stateArchives { nodes { name workspaceId environmentId } } }';

export const OPERATION_BY_ID = `query ($id: ID!, $scope: StateScopeInput) {
  stateArchiveOperation(id: $id, scope: $scope) { ...Operation }
}
${OPERATION}`;

export const ENTITIES = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    ... on StateArchive { id name }
    ... on State { id archive { id } }
  }
}`;

/** Names an environment. */
export interface Scope {
  readonly workspaceId: string;
  readonly environmentId: string;
  readonly reason?: string;
}

export interface UserError {
  readonly code: string;
  readonly message: string;
}

export interface ImportReport {
  readonly dryRun: boolean;
  readonly outcome: string;
  readonly name: string;
  readonly resourceSpansDerived: boolean;
  readonly historyDigest: string;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}

export interface Operation {
  readonly id: string;
  readonly status: string;
  readonly actor: string;
  readonly archive: {
    readonly sha256: string;
    readonly historyDigest: string;
    readonly downloadUrl: string | null;
  } | null;
  readonly report: ImportReport | null;
  readonly error: UserError | null;
  readonly replaced: { readonly status: string } | null;
}

export interface OperationPayload {
  readonly operation: Operation | null;
  readonly userErrors: readonly UserError[];
}

export interface Manifest {
  readonly currentSerial: string | null;
  readonly currentVersionId: string | null;
  readonly historyDigest: string;
  readonly versionCount: number;
  readonly eventCount: number;
  readonly sources: readonly string[];
  readonly [field: string]: unknown;
}

export interface Preview {
  readonly id: string;
  readonly name: string;
  readonly workspaceId: string;
  readonly environmentId: string;
  readonly lifecycleStatus: string;
  readonly status: { readonly exportable: boolean; readonly lockedBy: string | null };
  readonly manifest: Manifest;
}

/** How many resources each version added, changed and removed. */
export interface Changes {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

export interface Version {
  readonly serial: string;
  readonly isCurrent: boolean;
  readonly terraformVersion: string | null;
  readonly source: string;
  readonly createdBy: string | null;
  readonly sizeBytes: string;
  readonly sha256: string;
  readonly resourceCount: number;
  readonly outputNames: readonly string[];
  readonly changes: Changes;
}
