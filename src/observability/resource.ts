import { randomUUID } from 'node:crypto';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';

/** The software, as traces and metrics name it. */
export interface ObservedService {
  readonly name: string;
  readonly version: string;
}

const INSTANCE = randomUUID();

/** Who tells: the service, its version, this very process; and what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES add. */
export function resourceOf({ name, version }: ObservedService): Resource {
  return defaultResource()
    .merge(
      resourceFromAttributes({
        'service.name': name,
        'service.version': version,
        'service.instance.id': INSTANCE,
      }),
    )
    .merge(detectResources({ detectors: [envDetector] }));
}
