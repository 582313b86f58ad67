import { exportWork } from './export-state-archive.ts';
import { importWork } from './import-state-archive.ts';
import type { Workshop } from './operation-worker.ts';
import type { ArchiveServices } from './services.ts';
import { removeUsedUpload } from './uploads.ts';

/** What is to be done for an operation of each kind. */
export function openWorkshop(services: ArchiveServices): Workshop {
  return {
    workOf(operation, database) {
      const { order } = operation.request;
      switch (order.kind) {
        case 'EXPORT':
          return exportWork(services, operation, order, database);
        case 'IMPORT':
          return importWork(services, operation, order, database);
      }
    },
    async tidyUp({ order }, database) {
      if (order.kind === 'IMPORT') await removeUsedUpload(services, database, order.upload.key);
    },
  };
}
