import { Effect, Exit, Layer, Option } from "effect"
import { problem } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import { ProcessGroup } from "../../process/ProcessGroup.ts"
import type { GroupMember, ListeningSockets, SocketHandle } from "../../process/ProcessGroup.ts"
import {
  decodeToMember,
  notReadyAnswer,
  readyAnswer,
  Role,
  roleVariable,
  stoppingAnswer
} from "./Messages.ts"
import type { Question, ToMember, ToSupervisor } from "./Messages.ts"

/** Signals that the operator sends to the supervisor. A terminal or systemd also sends them to every process. */
const ignored = ["SIGHUP", "SIGUSR2"] as const
const stops = ["SIGTERM", "SIGINT"] as const

const stopping = problem(5003, "The service is stopping: send requests to another one")
const notReady = problem(5003, "A process of the service is not ready")

/** Ignores failures, because the supervisor may have ended. */
const send = (message: ToSupervisor, handle?: SocketHandle): Promise<void> =>
  new Promise((resolve) => {
    if (!globalThis.process.connected) return resolve()
    globalThis.process.send?.(message, handle, {}, () => resolve())
  })

/**
 * A process's side of its group: answers the supervisor, hands over its listening sockets, and stops when the
 * supervisor says so or has ended. ADR 0295
 */
class Member {
  readonly role: Role
  readonly #inherited: Array<SocketHandle> = []
  readonly #answers: { [question in Question]?: Effect.Effect<string> } = {
    alive: Effect.succeed("alive")
  }
  /** Waiting questions. `None`: the supervisor has ended. */
  readonly #told = new Map<number, (answer: Option.Option<string>) => void>()
  #asked = 0
  #sockets: ListeningSockets | undefined
  #reload = () => {}
  #hurry = () => {}
  #start: () => void = () => {}
  readonly #started = new Promise<void>((resolve) => {
    this.#start = resolve
  })

  constructor(role: Role) {
    this.role = role
    for (const signal of ignored) globalThis.process.on(signal, () => {})
    globalThis.process.on("message", (received: unknown, handle?: SocketHandle) =>
      Option.map(decodeToMember(received), (message) => this.#onMessage(message, handle))
    )
    globalThis.process.on("disconnect", () => {
      for (const tell of this.#told.values()) tell(Option.none())
      this.#leave()
    })
  }

  /** Resolves when all inherited sockets have been received. */
  async joined(): Promise<GroupMember> {
    if (this.role === "replacement") await this.#started
    return {
      announces: this.role === "first",
      joins: this.role !== "first",
      inherited: this.#inherited,
      onListening: (sockets) => {
        this.#sockets = sockets
      },
      onReload: (reload) =>
        Effect.sync(() => {
          this.#reload = reload
        }),
      onHurry: (hurry) => {
        this.#hurry = hurry
        // The first signal began the drain. Further ones are ignored here, because the supervisor passes the second one
        // on
        for (const signal of stops) globalThis.process.on(signal, () => {})
        void send({ _tag: "Draining" })
      },
      metrics: (own) => {
        this.#answers.metrics = own
        return Effect.flatMap(
          this.#askAll("metrics"),
          Option.match({ onNone: () => own, onSome: Effect.succeed })
        )
      },
      ready: (own) => {
        this.#answers.ready = Effect.map(Effect.exit(own), (exit) =>
          Exit.isSuccess(exit) ? readyAnswer : notReadyAnswer
        )
        return Effect.flatMap(this.#askAll("ready"), (all) =>
          readiness(Option.getOrElse(all, () => stoppingAnswer))
        )
      }
    }
  }

  /** Reports the last metrics, so that the process's counters remain in the sums. */
  readonly last = Effect.suspend(() => this.#answers.metrics ?? Effect.succeed("")).pipe(
    Effect.flatMap((text) => Effect.promise(() => send({ _tag: "Last", text })))
  )

  readonly listening = Effect.promise(() => send({ _tag: "Listening" }))

  #stop(): void {
    globalThis.process.kill(globalThis.process.pid, "SIGTERM")
  }

  /** Closes the sockets, which the replacement has open. */
  #leave(): void {
    this.#sockets?.close()
    this.#stop()
  }

  #onMessage(message: ToMember, handle: SocketHandle | undefined): void {
    switch (message._tag) {
      case "Socket":
        if (handle !== undefined) this.#inherited.push(handle)
        return
      case "Start":
        return this.#start()
      case "HandOver":
        for (const socket of this.#sockets?.handles() ?? []) void send({ _tag: "Socket" }, socket)
        return void send({ _tag: "Sockets" })
      case "Leave":
        return this.#leave()
      case "Stop":
        return this.#stop()
      case "Hurry":
        return this.#hurry()
      case "Reload":
        return this.#reload()
      case "Ask":
        return this.#answer(message.id, message.question)
      case "Told":
        this.#told.get(message.id)?.(Option.some(message.text))
        return void this.#told.delete(message.id)
    }
  }

  #answer(id: number, question: Question): void {
    const answer = this.#answers[question]
    // It cannot answer before it listens
    if (answer === undefined) return
    void Effect.runPromise(answer).then((text) => send({ _tag: "Answer", id, text }))
  }

  /** Asks all processes through the supervisor. `None`: the supervisor has ended. */
  #askAll(question: Question): Effect.Effect<Option.Option<string>> {
    return Effect.callback<Option.Option<string>>((resume) => {
      if (!globalThis.process.connected) return resume(Effect.succeedNone)
      this.#asked += 1
      const id = this.#asked
      this.#told.set(id, (answer) => resume(Effect.succeed(answer)))
      void send({ _tag: "AskAll", id, question })
      return Effect.sync(() => this.#told.delete(id))
    })
  }
}

const readiness = (answer: string): Effect.Effect<void, Problem> => {
  if (answer === readyAnswer) return Effect.void
  return Effect.fail(answer === stoppingAnswer ? stopping : notReady)
}

const role = Role.literals.find((it) => it === globalThis.process.env[roleVariable])

/** This process as a member; undefined if no supervisor started it. */
export const member: Member | undefined =
  role === undefined || globalThis.process.send === undefined ? undefined : new Member(role)

// Removed, because programs that this process starts are not members
delete globalThis.process.env[roleVariable]

/** The group of this process, which may be alone. This is the outermost layer, because its end is reported last. */
export const layer =
  member === undefined
    ? Layer.empty
    : Layer.effect(
        ProcessGroup,
        Effect.acquireRelease(
          Effect.promise(() => member.joined()),
          () => member.last
        )
      )

/** Tells the supervisor that this process serves requests. */
export const layerListening = Layer.effectDiscard(member?.listening ?? Effect.void)
