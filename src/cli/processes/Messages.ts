import { Schema } from "effect"

/** What the processes of a group are asked together. */
export const Question = Schema.Literals(["metrics", "ready"])
export type Question = typeof Question.Type

/** The answers to `ready`, of one process or of all. */
export const readyAnswer = "ready"
export const notReadyAnswer = "not ready"
export const stoppingAnswer = "stopping"

/** From the supervisor to a process. */
export const ToMember = Schema.Union([
  /** Follows the sockets that the process inherits. */
  Schema.TaggedStruct("Start", {}),
  /** With a listening socket. */
  Schema.TaggedStruct("Socket", {}),
  /** Send your listening sockets, and keep them. */
  Schema.TaggedStruct("HandOver", {}),
  /** Your replacement listens: close your sockets and drain. */
  Schema.TaggedStruct("Leave", {}),
  Schema.TaggedStruct("Stop", {}),
  Schema.TaggedStruct("Hurry", {}),
  Schema.TaggedStruct("Reload", {}),
  Schema.TaggedStruct("Ask", { id: Schema.Int, question: Question }),
  /** What all have answered, to the one that asked. */
  Schema.TaggedStruct("Told", { id: Schema.Int, text: Schema.String })
])
export type ToMember = typeof ToMember.Type

/** From a process to the supervisor. */
export const ToSupervisor = Schema.Union([
  Schema.TaggedStruct("Listening", {}),
  Schema.TaggedStruct("Draining", {}),
  /** With a listening socket. */
  Schema.TaggedStruct("Socket", {}),
  Schema.TaggedStruct("Sockets", {}),
  Schema.TaggedStruct("AskAll", { id: Schema.Int, question: Question }),
  Schema.TaggedStruct("Answer", { id: Schema.Int, text: Schema.String }),
  /** The metrics of a process that ends. */
  Schema.TaggedStruct("Last", { text: Schema.String })
])
export type ToSupervisor = typeof ToSupervisor.Type

export const decodeToMember = Schema.decodeUnknownOption(ToMember)
export const decodeToSupervisor = Schema.decodeUnknownOption(ToSupervisor)

/** What a process is in its group. Passed in the environment, and removed from it at once. */
export const Role = Schema.Literals(["first", "next", "replacement"])
export type Role = typeof Role.Type
export const roleVariable = "GATEWAY_PROCESS_ROLE"
