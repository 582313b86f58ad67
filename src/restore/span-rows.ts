import type { ArchivedVersion } from '../archive/model.ts';
import type { ProjectedResource } from '../terraform/projection.ts';
import { CarriedSpans } from './carried-spans.ts';
import type { RestorePlan } from './plan.ts';
import type { ResourceRow } from './resource-rows.ts';
import { SpanDerivation } from './span-derivation.ts';

/** Where the rows of `resources` come from as the versions of an archive go by once more. */
export interface SpanRows {
  /** The rows that begin at the next version, in serial order. */
  begunAt(
    version: ArchivedVersion,
    resources: ReadonlyMap<string, ProjectedResource>,
  ): Promise<readonly ResourceRow[]>;
  close(): Promise<void>;
}

/** The rows a plan settled on: those the archive carries, or those derived from its raw states. */
export function spansOf(plan: RestorePlan): SpanRows {
  return plan.derivedSpans === null ? carriedRows(plan) : derivedRows(plan, plan.derivedSpans);
}

function carriedRows({ request }: RestorePlan): SpanRows {
  const carried = new CarriedSpans(request);
  return {
    async begunAt({ serial }, resources) {
      const { begun } = await carried.take(serial);
      return begun.flatMap((span) => {
        const resource = resources.get(span.address);
        if (resource === undefined) return [];
        const { attributesHash, schemaVersion, createSerial, deleteSerial, createdAt } = span;
        return {
          resource: { ...resource, attributesHash, schemaVersion },
          createSerial,
          deleteSerial,
          createdAt,
        };
      });
    },
    close: () => carried.close(),
  };
}

function derivedRows({ archive }: RestorePlan, spans: SpanDerivation): SpanRows {
  const replay = new SpanDerivation(archive.manifest.state.currentSerial);
  return {
    begunAt: async ({ serial, createdAt }, resources) =>
      replay.apply(serial, resources).map((resource) => ({
        resource,
        createSerial: serial,
        deleteSerial: spans.endOf(resource.address, serial),
        // A row is as old as the version that brought it (data model 2.5).
        createdAt,
      })),
    close: async () => {},
  };
}
