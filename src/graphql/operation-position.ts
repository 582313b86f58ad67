import { isUtcTime } from '../base/time.ts';
import { isUuid } from '../base/uuid.ts';
import type { OperationPosition } from '../operations/operation-records.ts';
import type { OperationParent } from './parents.ts';

/** The key of an operation's place in a list of operations. */
export function positionOf({ record: { createdAt, id } }: OperationParent): string {
  return `${createdAt} ${id}`;
}

/** The place that a key of {@link positionOf} stands for; null when the text is none. */
export function readPosition(text: string): OperationPosition | null {
  const [createdAt = '', id = '', ...more] = text.split(' ');
  return isUtcTime(createdAt) && isUuid(id) && more.length === 0 ? { createdAt, id } : null;
}
