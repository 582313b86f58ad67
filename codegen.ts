import { readFileSync, writeFileSync } from 'node:fs';
import { codegen } from '@graphql-codegen/core';
import * as typescript from '@graphql-codegen/typescript';
import * as typescriptResolvers from '@graphql-codegen/typescript-resolvers';
import { buildASTSchema, lexicographicSortSchema, parse as parseGraphql, visit } from 'graphql';
import { parse as parseYaml } from 'yaml';

/**
 * @file What `graphql-codegen --config codegen.yml` does with this project's configuration, without the command line, which
 * brings loaders for every place that a schema can be in.
 */

/** As much of a configuration of GraphQL Code Generator as this project's uses. */
interface Configuration {
  readonly schema: string;
  readonly generates: Readonly<
    Record<
      string,
      { readonly plugins: readonly string[]; readonly config: Readonly<Record<string, unknown>> }
    >
  >;
}

/** A file that the configuration asks for. */
interface GeneratedFile {
  readonly location: URL;
  readonly text: string;
}

const PLUGINS = { typescript, 'typescript-resolvers': typescriptResolvers };

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');

/** @returns the files of `codegen.yml`, as they should be. */
export function generateFiles(): Promise<readonly GeneratedFile[]> {
  const { schema, generates }: Configuration = parseYaml(read('codegen.yml'));
  // Not `disableDescriptions`, with which the generator looks for the definitions of federation's directives. The descriptions are
  // read in the schema, which has them all.
  const document = visit(parseGraphql(read(schema)), {
    enter: (node) => ('description' in node ? { ...node, description: undefined } : undefined),
  });
  const schemaAst = lexicographicSortSchema(buildASTSchema(document, { assumeValidSDL: true }));
  return Promise.all(
    Object.entries(generates).map(async ([filename, { plugins, config }]) => {
      const text = await codegen({
        filename,
        schema: document,
        schemaAst,
        documents: [],
        config,
        plugins: plugins.map((name) => ({ [name]: {} })),
        pluginMap: PLUGINS,
      });
      return { location: new URL(filename, import.meta.url), text };
    }),
  );
}

if (import.meta.main) {
  for (const { location, text } of await generateFiles()) writeFileSync(location, text);
}
