/**
 * The only fields of the subgraph that anyone may ask for. `_service` gives out the SDL, which is public;
 * `_entities` does nothing itself, and each entity it is asked for is guarded as its type demands; `PageInfo` is
 * shared between subgraphs, says nothing without the connection it belongs to, and that connection is guarded;
 * `State.id` gives back what it was asked with, and a guard on it would reach into other subgraphs' `State`.
 */
export const PUBLIC_COORDINATES: readonly string[] = [
  'Query._service',
  'Query._entities',
  '_Service.sdl',
  'PageInfo',
  'State.id',
];
