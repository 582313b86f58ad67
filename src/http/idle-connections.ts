import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Makes closing a server spare the connections still at work. Node takes a connection for idle as soon as its answer
 * is complete in memory, and destroys it though much of the answer may not be sent yet; and a connection that becomes
 * idle after closing began keeps the server open until it times out. Here a connection is idle when its answer has
 * been handed to the network and the request received, and one that becomes idle while closing is closed.
 */
export function closeOnlyIdleConnections(server: Server): void {
  const idle = new Set<Socket>();
  let closing = false;
  const becomesIdle = (socket: Socket) => {
    if (socket.destroyed) return;
    if (closing) socket.destroy();
    else idle.add(socket);
  };
  server.on('connection', (socket: Socket) => {
    becomesIdle(socket);
    socket.once('close', () => idle.delete(socket));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    idle.delete(socket);
    response.once('close', () => {
      if (request.destroyed) becomesIdle(socket);
      else request.once('close', () => becomesIdle(socket));
    });
  });
  // Node and Fastify both call it on closing.
  server.closeIdleConnections = () => {
    closing = true;
    for (const socket of idle) socket.destroy();
  };
}
