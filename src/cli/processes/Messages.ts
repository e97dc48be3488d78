import { Schema } from "effect"

/** Questions that all processes of a group answer. `alive` is answered at once, whatever the store does. */
export const Question = Schema.Literals(["alive", "metrics", "ready"])
export type Question = typeof Question.Type

/** The answer to `ready`, from one process or from all. */
export const readyAnswer = "ready"
export const notReadyAnswer = "not ready"
export const stoppingAnswer = "stopping"

/** Messages from the supervisor to a process. */
export const ToMember = Schema.Union([
  /** Sent after the inherited sockets. */
  Schema.TaggedStruct("Start", {}),
  /** Carries a listening socket. */
  Schema.TaggedStruct("Socket", {}),
  /** Asks the process to send its listening sockets and to keep using them. */
  Schema.TaggedStruct("HandOver", {}),
  /** The replacement is listening: close the sockets and drain. */
  Schema.TaggedStruct("Leave", {}),
  Schema.TaggedStruct("Stop", {}),
  Schema.TaggedStruct("Hurry", {}),
  Schema.TaggedStruct("Reload", {}),
  Schema.TaggedStruct("Ask", { id: Schema.Int, question: Question }),
  /** The combined answers of all processes, for the process that asked. */
  Schema.TaggedStruct("Told", { id: Schema.Int, text: Schema.String })
])
export type ToMember = typeof ToMember.Type

/** Messages from a process to the supervisor. */
export const ToSupervisor = Schema.Union([
  Schema.TaggedStruct("Listening", {}),
  Schema.TaggedStruct("Draining", {}),
  /** Carries a listening socket. */
  Schema.TaggedStruct("Socket", {}),
  Schema.TaggedStruct("Sockets", {}),
  Schema.TaggedStruct("AskAll", { id: Schema.Int, question: Question }),
  Schema.TaggedStruct("Answer", { id: Schema.Int, text: Schema.String }),
  /** The last metrics of a process that is ending. */
  Schema.TaggedStruct("Last", { text: Schema.String })
])
export type ToSupervisor = typeof ToSupervisor.Type

export const decodeToMember = Schema.decodeUnknownOption(ToMember)
export const decodeToSupervisor = Schema.decodeUnknownOption(ToSupervisor)

/** The role of a process in its group. Passed in the environment and removed from it immediately. */
export const Role = Schema.Literals(["first", "next", "replacement"])
export type Role = typeof Role.Type
export const roleVariable = "GATEWAY_PROCESS_ROLE"
