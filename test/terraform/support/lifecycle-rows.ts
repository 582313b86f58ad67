import { ResourceLifecycle } from '../../../src/terraform/lifecycle.ts';
import type { ProjectedResource, Projection } from '../../../src/terraform/projection.ts';

/** A row of `resources` and the versions it is of. */
export interface LifecycleRow {
  readonly resource: ProjectedResource;
  readonly createSerial: bigint;
  deleteSerial: bigint | null;
}

/** The rows that the versions of a history leave, as they are applied one by one. */
export class LifecycleRows {
  readonly rows: LifecycleRow[] = [];
  readonly #lifecycle = new ResourceLifecycle();

  /** Takes the next version; gives the addresses whose rows it opens and closes. */
  apply(serial: bigint, projection: Projection): { readonly opened: string[]; readonly closed: string[] } {
    const opened: string[] = [];
    const closed: string[] = [];
    this.#lifecycle.apply(serial, projection.table, {
      open: (row) => {
        const resource = projection.rowAt(row);
        opened.push(resource.address);
        const { attributes, sensitivePaths, dependencies } = resource;
        // Their document may change.
        const kept = {
          attributes: Buffer.from(attributes),
          sensitivePaths: Buffer.from(sensitivePaths),
          dependencies: Buffer.from(dependencies),
        };
        return (
          this.rows.push({ resource: { ...resource, ...kept }, createSerial: serial, deleteSerial: null }) - 1
        );
      },
      close: (number) => {
        const row = this.rows[number];
        if (row?.deleteSerial !== null) throw new Error('A row was closed that was not open.');
        row.deleteSerial = serial;
        closed.push(row.resource.address);
      },
    });
    return { opened, closed };
  }
}
