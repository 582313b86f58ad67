import type { ArchivedVersion } from '../archive/model.ts';
import type { StateDocument } from '../terraform/document.ts';
import { projectResources } from '../terraform/projection.ts';
import { CarriedSpans } from './carried-spans.ts';
import type { RestorePlan } from './plan.ts';
import type { ResourceRow } from './resource-rows.ts';
import type { SpanDerivation } from './span-derivation.ts';

/**
 * @file How an import comes to its rows of `resources`, one for each span (data model 3.7). An archive may carry its spans
 * and may not, and what it carries may contradict its raw states. So the plan walks the versions once, in serial order:
 *
 * - {@link CarriedSpans} deals out the spans the archive carries, beside the version each begins at;
 * - `SpanAgreement` says whether they are true to the raw states;
 * - `SpanDerivation` derives the spans from the raw states meanwhile, for the case that they are not, or are not there.
 *
 * The plan settles on one of the two, and {@link spansOf} makes the rows of it as the versions go by a second time, when
 * they are written.
 */

/** Where the rows of `resources` come from as the versions of an archive go by once more. */
export interface SpanRows {
  /** The rows that begin at the next version, in serial order. What does not begin there is not projected. */
  begunAt(version: ArchivedVersion, document: StateDocument): Promise<readonly ResourceRow[]>;
  close(): Promise<void>;
}

/** The rows a plan settled on: those the archive carries, or those derived from its raw states. */
export function spansOf(plan: RestorePlan): SpanRows {
  return plan.derivedSpans === null ? carriedRows(plan) : derivedRows(plan.derivedSpans);
}

function carriedRows({ request }: RestorePlan): SpanRows {
  const carried = new CarriedSpans(request);
  return {
    async begunAt({ serial }, document) {
      const { begun } = await carried.take(serial);
      if (begun.length === 0) return [];
      const spans = new Map(begun.map((span) => [span.address, span]));
      const projection = projectResources(document, 'as-written', spans);
      return begun.flatMap((span) => {
        const resource = projection.row(span.address);
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

function derivedRows(spans: SpanDerivation): SpanRows {
  return {
    async begunAt({ serial, createdAt }, document) {
      const projection = projectResources(document, 'terraform', {
        has: (address) => spans.beginsAt(address, serial),
      });
      return Array.from(projection.rows(), (resource) => ({
        resource,
        createSerial: serial,
        deleteSerial: spans.endOf(resource.address, serial),
        // A row is as old as the version that brought it (data model 2.5).
        createdAt,
      }));
    },
    close: async () => {},
  };
}
