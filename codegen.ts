import { readFileSync, writeFileSync } from 'node:fs';
import { codegen } from '@graphql-codegen/core';
import * as typescript from '@graphql-codegen/typescript';
import * as typescriptResolvers from '@graphql-codegen/typescript-resolvers';
import { buildASTSchema, lexicographicSortSchema, parse } from 'graphql';

/** Where the resolver types are, which are those of `schema.graphql`. */
export const SCHEMA_TYPES = new URL('./src/graphql/schema-types.ts', import.meta.url);

const SCHEMA = new URL('./schema.graphql', import.meta.url);

const CONFIG = {
  federation: true,
  useTypeImports: true,
  skipTypename: true,
  immutableTypes: true,
  enumsAsTypes: true,
  avoidOptionals: { field: true, inputValue: false, object: true, defaultValue: true },
  maybeValue: 'T | null',
  inputMaybeValue: 'T | null | undefined',
  strictScalars: true,
  contextType: './context.ts#GraphqlContext',
  mappers: {
    State: './parents.ts#StateParent',
    StateArchive: './parents.ts#StateArchiveParent',
    StateArchiveStatus: './parents.ts#StateArchiveParent',
    StateArchiveVersion: './parents.ts#VersionParent',
    StateArchiveChanges: '../history/versions.ts#VersionContents',
    StateArchiveTag: './parents.ts#TagParent',
    StateArchiveOperation: './parents.ts#OperationParent',
    StateArchiveFile: './parents.ts#FileParent',
    StateArchiveImportReport: '../restore/report.ts#RestoreReport',
  },
  scalars: {
    BigInt: 'bigint',
    DateTime: 'string',
    Sha256: 'string',
    Upload: "Promise<import('../http/upload.ts').FileUpload>",
    ID: 'string',
    _FieldSet: 'string',
  },
};

/** @returns the text that {@link SCHEMA_TYPES} should have. */
export function generateSchemaTypes(): Promise<string> {
  const schema = parse(readFileSync(SCHEMA, 'utf8'));
  return codegen({
    filename: SCHEMA_TYPES.pathname,
    schema,
    schemaAst: lexicographicSortSchema(buildASTSchema(schema, { assumeValidSDL: true })),
    documents: [],
    config: CONFIG,
    plugins: [{ typescript: {} }, { 'typescript-resolvers': {} }],
    pluginMap: { typescript, 'typescript-resolvers': typescriptResolvers },
  });
}

if (import.meta.main) writeFileSync(SCHEMA_TYPES, await generateSchemaTypes());
