/** The request header in which the gateway shows its secret. */
export const GATEWAY_SECRET_HEADER = 'x-gateway-secret';
