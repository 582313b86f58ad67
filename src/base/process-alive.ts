import { isErrno } from './errno.ts';

/** Whether a process of this number exists on this machine, of whichever user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isErrno(error, 'ESRCH');
  }
}
