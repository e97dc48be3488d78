import { Option } from "effect"
import { fork } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import type { SocketHandle } from "../../process/ProcessGroup.ts"
import {
  decodeToSupervisor,
  notReadyAnswer,
  readyAnswer,
  roleVariable,
  stoppingAnswer
} from "./Messages.ts"
import type { Question, Role, ToMember, ToSupervisor } from "./Messages.ts"
import { lasting, sumMetrics } from "./MetricsSum.ts"

/** How a child ended: its exit status, or the signal that killed it. */
export interface Ended {
  readonly status: number | NodeJS.Signals
  /** How long it ran, in milliseconds. */
  readonly ranMillis: number
}

/** A process of the group, as the supervisor sees it. */
export interface Child {
  readonly pid: number
  /** `leaving`: it gets no new connections. */
  state: "starting" | "listening" | "leaving" | "ended"
  /** The metrics that it last reported. */
  metrics: string
  /** Resolves when the process serves requests, or ended before it did. */
  readonly started: Promise<void>
  readonly ended: Promise<Ended>
  readonly process: ChildProcess
}

/** A question that a process has not answered yet. */
interface Asked {
  readonly child: Child
  /** Ends the question, without an answer if the process has ended. */
  readonly end: (text?: string) => void
}

/** A process that does not answer within this time counts as not ready, or as not alive. */
const answerMillisMax = 2000
/** The time limit of a handover. If a process hangs, its replacement opens new sockets. */
const handOverMillisMax = 10_000

/** The processes of a group. Starts them, passes sockets between them, and combines their answers. */
export class Children {
  readonly #all = new Set<Child>()
  readonly #asked = new Map<number, Asked>()
  readonly #processes: number
  readonly #ownMetrics: () => string
  #lastAsked = 0
  /** The sum of the counters of processes that have ended. */
  #ended = ""
  isStopping = false

  constructor(processes: number, ownMetrics: () => string) {
    this.#processes = processes
    this.#ownMetrics = ownMetrics
  }

  get all(): ReadonlyArray<Child> {
    return [...this.#all]
  }

  get listening(): ReadonlyArray<Child> {
    return this.all.filter(({ state }) => state === "listening")
  }

  /** Starts a process that runs the same program and takes over these listening sockets. */
  start(role: Role, sockets: ReadonlyArray<SocketHandle> = []): Child {
    const { argv, env } = globalThis.process
    const began = performance.now()
    const [, program = "", ...words] = argv
    const process = fork(program, words, {
      env: { ...env, PROCESSES: String(this.#processes), [roleVariable]: role }
    })
    let onStarted = () => {}
    const started = new Promise<void>((resolve) => {
      onStarted = resolve
    })
    const ended = new Promise<Ended>((resolve) => {
      const end = (status: Ended["status"]) => {
        this.#all.delete(child)
        child.state = "ended"
        this.#ended = sumMetrics([this.#ended, lasting(child.metrics)])
        for (const asked of this.#asked.values()) if (asked.child === child) asked.end()
        onStarted()
        resolve({ status, ranMillis: performance.now() - began })
      }
      process.once("exit", (code, signal) => end(signal ?? code ?? 1))
      // The process could not be started
      process.once("error", () => process.pid === undefined && end(1))
    })
    const child: Child = {
      pid: process.pid ?? 0,
      state: "starting",
      metrics: "",
      started,
      ended,
      process
    }
    this.#all.add(child)
    process.on("message", (received) =>
      Option.map(decodeToSupervisor(received), (message) =>
        this.#onMessage(child, message, onStarted)
      )
    )
    if (role === "replacement") {
      for (const socket of sockets) send(child, { _tag: "Socket" }, socket)
      send(child, { _tag: "Start" })
    }
    return child
  }

  /**
   * The listening sockets of a process, which continues to use them. While at least one process has a socket open, its
   * unaccepted connections are kept.
   */
  socketsOf(child: Child): Promise<ReadonlyArray<SocketHandle>> {
    return new Promise((resolve) => {
      const sockets: Array<SocketHandle> = []
      const end = () => {
        clearTimeout(timer)
        child.process.off("message", note)
        resolve(sockets)
      }
      const note = (received: unknown, socket?: SocketHandle) =>
        Option.map(decodeToSupervisor(received), ({ _tag }) => {
          if (_tag === "Socket" && socket !== undefined) sockets.push(socket)
          if (_tag === "Sockets") end()
        })
      const timer = setTimeout(end, handOverMillisMax)
      void child.ended.then(end)
      child.process.on("message", note)
      send(child, { _tag: "HandOver" })
    })
  }

  /** Tells a process to drain and end, because its replacement has its sockets. */
  leave(child: Child): void {
    child.state = "leaving"
    send(child, { _tag: "Leave" })
  }

  /** Whether the process answers, so that its event loop runs. */
  async isAlive(child: Child): Promise<boolean> {
    return (await this.#ask(child, "alive")) !== undefined
  }

  reload(child: Child): void {
    send(child, { _tag: "Reload" })
  }

  tell(message: ToMember): void {
    for (const child of this.#all) send(child, message)
  }

  kill(): void {
    for (const { process } of this.#all) process.kill("SIGKILL")
  }

  #onMessage(child: Child, message: ToSupervisor, onStarted: () => void): void {
    switch (message._tag) {
      case "Listening":
        child.state = "listening"
        return onStarted()
      case "Draining":
        child.state = "leaving"
        return
      case "Last":
        child.metrics = message.text
        return
      case "Answer":
        return this.#asked.get(message.id)?.end(message.text)
      case "AskAll":
        return void this.#askAll(message.question).then((text) =>
          send(child, { _tag: "Told", id: message.id, text })
        )
      default:
    }
  }

  async #askAll(question: Question): Promise<string> {
    if (question === "ready") {
      if (this.isStopping) return stoppingAnswer
      const answers = await Promise.all(this.listening.map((it) => this.#ask(it, question)))
      return answers.length > 0 && answers.every((it) => it === readyAnswer)
        ? readyAnswer
        : notReadyAnswer
    }
    const asked = this.all.filter(({ state }) => state !== "starting")
    await Promise.all(
      asked.map(async (it) => {
        it.metrics = (await this.#ask(it, question)) ?? it.metrics
      })
    )
    // Processes that have ended in the meantime are already in the sum of ended ones
    const texts = asked.filter(({ state }) => state !== "ended").map(({ metrics }) => metrics)
    return sumMetrics([...texts, this.#ended, this.#ownMetrics()])
  }

  #ask(child: Child, question: Question): Promise<string | undefined> {
    if (child.state === "ended") return Promise.resolve(undefined)
    this.#lastAsked += 1
    const id = this.#lastAsked
    return new Promise<string | undefined>((resolve) => {
      const end = (text?: string) => {
        clearTimeout(timer)
        this.#asked.delete(id)
        resolve(text)
      }
      const timer = setTimeout(end, answerMillisMax)
      this.#asked.set(id, { child, end })
      send(child, { _tag: "Ask", id, question })
    })
  }
}

/** Sends a message, which is lost if the process has just ended. */
const send = ({ process }: Child, message: ToMember, socket?: SocketHandle): void => {
  if (process.connected) process.send(message, socket, {}, () => {})
}
