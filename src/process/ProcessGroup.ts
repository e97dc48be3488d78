import { Context, Effect } from "effect"
import type { SendHandle } from "node:child_process"
import type { Problem } from "../domain/Problem.ts"

/** A listening socket that one process can pass to another. */
export type SocketHandle = NonNullable<SendHandle>

/** The listening sockets of this process. */
export interface ListeningSockets {
  readonly handles: () => ReadonlyArray<SocketHandle>
  /** Closes them while another process has them open; connections stay. */
  readonly close: () => void
}

export interface GroupMember {
  /** Whether it prints what a command prints once. */
  readonly announces: boolean
  /** Whether another process of the group listens on the port already. */
  readonly joins: boolean
  /** The listening sockets of the process that this one replaces. */
  readonly inherited: ReadonlyArray<SocketHandle>
  readonly onListening: (sockets: ListeningSockets) => void
  /** Called when the operator asks for a reload of the catalog: in one process of the group. */
  readonly onReload: (reload: () => void) => Effect.Effect<void>
  /** Called at the second stop signal. */
  readonly onHurry: (hurry: () => void) => void
  /** Takes the metrics of this process, and returns those of all, added up. */
  readonly metrics: (own: Effect.Effect<string>) => Effect.Effect<string>
  /** Takes whether this process is ready, and returns whether all that listen are. */
  readonly ready: (own: Effect.Effect<void, Problem>) => Effect.Effect<void, Problem>
}

/** A single process, which receives signals itself and reports only its own state. */
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
 * What a process shares with the others that one command has started with `PROCESSES`, and the port of that command.
 * docs/reference/processes.md#all-cores-of-a-machine
 */
export const ProcessGroup = Context.Reference<GroupMember>("gateway/process/ProcessGroup", {
  defaultValue: () => alone
})
