import { Context, Effect } from "effect"
import type { SendHandle } from "node:child_process"
import type { Problem } from "../domain/Problem.ts"

/** A listening socket that one process can pass to another. */
export type SocketHandle = NonNullable<SendHandle>

/** The listening sockets of this process. */
export interface ListeningSockets {
  readonly handles: () => ReadonlyArray<SocketHandle>
  /** Closes the sockets while another process has them open. Existing connections stay open. */
  readonly close: () => void
}

export interface GroupMember {
  /** Whether this process prints what the command prints once. */
  readonly announces: boolean
  /** Whether another process of the group is already listening on the port. */
  readonly joins: boolean
  /** The listening sockets of the process that this process replaces. */
  readonly inherited: ReadonlyArray<SocketHandle>
  readonly onListening: (sockets: ListeningSockets) => void
  /**
   * Registers the handler for the operator's request to reload the catalog. It is called in one process of the group.
   */
  readonly onReload: (reload: () => void) => Effect.Effect<void>
  /** Registers the handler for the second stop signal. */
  readonly onHurry: (hurry: () => void) => void
  /** Returns the sum of all processes' metrics, given those of this process. */
  readonly metrics: (own: Effect.Effect<string>) => Effect.Effect<string>
  /** Checks whether all listening processes are ready, given the check of this process. */
  readonly ready: (own: Effect.Effect<void, Problem>) => Effect.Effect<void, Problem>
}

/** A single process: it receives signals itself and reports only its own state. */
const alone: GroupMember = {
  announces: true,
  joins: false,
  inherited: [],
  onListening: () => {},
  onReload: (reload) => Effect.sync(() => process.on("SIGHUP", reload)),
  onHurry: (hurry) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, hurry)
  },
  metrics: (own) => own,
  ready: (own) => own
}

/**
 * What a process shares with the others that the same command started (`PROCESSES`), and the command's port.
 * docs/reference/processes.md#all-cores-of-a-machine
 */
export const ProcessGroup = Context.Reference<GroupMember>("gateway/process/ProcessGroup", {
  defaultValue: () => alone
})
