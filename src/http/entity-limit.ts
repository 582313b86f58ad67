/** How many references of `_entities` one request is answered; each beyond them fails alone. */
export const ENTITIES_ANSWERED = {
  /** To a caller that comes by itself. */
  caller: 100,
  /** To the gateway, which gathers what many lists refer to, several fetches in one request, and cannot split them. */
  gateway: 2_000,
} as const;

/** How many references a request is answered, by the context its resolvers are given. */
export function entitiesAnswered(context: { readonly fromGateway?: unknown }): number {
  return context.fromGateway === true ? ENTITIES_ANSWERED.gateway : ENTITIES_ANSWERED.caller;
}
