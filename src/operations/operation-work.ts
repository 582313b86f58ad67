import { exportWork } from './export-state-archive.ts';
import { importWork } from './import-state-archive.ts';
import type { Workshop } from './operation-worker.ts';
import type { ArchiveServices } from './services.ts';

/** What is to be done for an operation of each kind. */
export function openWorkshop(services: ArchiveServices): Workshop {
  return {
    workOf(operation, database) {
      const { order } = operation.request;
      switch (order.kind) {
        case 'EXPORT':
          return exportWork(services, operation, database);
        case 'IMPORT':
          return importWork(services, operation, order, database);
      }
    },
    async tidyUp({ order }) {
      if (order.kind === 'IMPORT') await services.store.uploads.remove(order.upload.key);
    },
  };
}
