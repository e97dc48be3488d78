/** `generation-gateway/client/effect`: the client as Effects and Streams, over the same core. docs/client.md#effect */
import { Clock, Config, Context, Effect, Layer, Option, Random, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { GatewayError } from "./Errors.ts"
import type { ClientError } from "./Errors.ts"
import type { ListenOptions } from "./Events.ts"
import { GatewayClient as Client } from "./GatewayClient.ts"
import type { AnyRoute, ArgumentsOf, FilterOf, List, ListRoute } from "./Requests.ts"
import type { InputOf, ModelName, TaskRef } from "./Task.ts"
import type { CreateOptions, WaitOptions } from "./Tasks.ts"
import type { RequestOptions } from "./Transport.ts"

export type { ClientError } from "./Errors.ts"

/** Has no `signal`, because interrupting the Effect aborts its request; the task continues. */
type Options<Given> = Omit<Given, "signal">

export interface EffectClientOptions {
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted
  /** The timeout of each attempt in milliseconds. Default 60,000. */
  readonly timeout?: number | undefined
  /** The maximum number of retries. Default 4. */
  readonly maxRetries?: number | undefined
  readonly serviceName?: string | undefined
}

const isClientError = (error: unknown): error is ClientError => error instanceof GatewayError

/** Fails with the client's errors. A programming error, such as a malformed model name, is a defect. */
const fromPromise = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ClientError> =>
  Effect.callback((resume, signal) => {
    work(signal).then(
      (value) => resume(Effect.succeed(value)),
      (error) => resume(isClientError(error) ? Effect.fail(error) : Effect.die(error))
    )
  })

const make = Effect.fnUntraced(function* (options: EffectClientOptions) {
  const context = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  const random = yield* Random.Random
  const fetch = yield* FetchHttpClient.Fetch
  const client = new Client({
    ...options,
    apiKey: Redacted.value(options.apiKey),
    fetch,
    clock: {
      now: () => clock.currentTimeMillisUnsafe(),
      sleep: (milliseconds, signal) =>
        Effect.runPromiseWith(context)(Effect.sleep(milliseconds), { signal })
    },
    random: () => random.nextDoubleUnsafe()
  })

  /** Calls the Promise API. Fails with its errors, and aborts its requests when the Effect is interrupted. */
  const use = <A>(work: (client: Client) => Promise<A>): Effect.Effect<A, ClientError> =>
    fromPromise((signal) => work(client.with({ signal })))

  /** Streams the items of a list of the Promise API. */
  const streamOf = <Item>(list: (client: Client) => List<Item>): Stream.Stream<Item, ClientError> =>
    Stream.paginate(Option.none<string>(), (cursor) =>
      use((client) => list(client).page(Option.getOrUndefined(cursor))).pipe(
        Effect.map(({ data, next_cursor }) => {
          const next = Option.map(Option.fromNullOr(next_cursor), Option.some)
          return [data, next] as const
        })
      )
    )

  function resource<Methods extends object>(
    of: (client: Client) => Methods,
    lists: Readonly<Record<ListsOf<Methods>, true>>
  ): AsEffects<Methods>
  function resource(of: (client: Client) => AnyMethods, lists: object): unknown {
    return Object.fromEntries(
      Object.keys(of(client)).map((name) => [
        name,
        (...args: Array<unknown>) =>
          name in lists
            ? streamOf((client) => methodOf(of(client), name)(...args))
            : use((client) => methodOf(of(client), name)(...args))
      ])
    )
  }

  return {
    use,
    tasks: tasksOf(client, use, streamOf),
    events: {
      /** An endless stream of events as webhooks deliver them. After a lost connection it resumes where it was cut. */
      listen: (options?: Options<ListenOptions>) =>
        streamed(client, ({ events }) => events.listen(options))
    },
    wallet: resource(({ wallet }) => wallet, { entries: true }),
    apiKeys: resource(({ apiKeys }) => apiKeys, { list: true }),
    webhookSecret: resource(({ webhookSecret }) => webhookSecret, {}),
    webhookEndpoints: resource(({ webhookEndpoints }) => webhookEndpoints, { list: true }),
    webhookDeliveries: resource(({ webhookDeliveries }) => webhookDeliveries, { list: true }),
    calls: resource(({ calls }) => calls, { list: true }),
    usage: resource(({ usage }) => usage, { list: true }),
    models: resource(({ models }) => models, { list: true }),
    request: <R extends AnyRoute>(route: R, ...args: ArgumentsOf<R>) =>
      use((client) => client.request(route, ...args)),
    list: <R extends ListRoute>(
      route: R,
      filter?: FilterOf<R>,
      options?: Options<RequestOptions> & { readonly path?: Readonly<Record<string, string>> }
    ) => streamOf((client) => client.list(route, filter, options))
  }
})

type AnyMethods = Readonly<
  Record<string, (...args: Array<unknown>) => Promise<unknown> & List<unknown>>
>

const methodOf = (methods: AnyMethods, name: string) => {
  const method = methods[name]
  if (method === undefined) throw new TypeError(`${name} is not a method`)
  return method
}

/** The names of the methods that return lists. */
type ListsOf<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...args: never) => List<unknown> ? Name : never
}[keyof Methods]

type WithoutSignal<Args> = {
  [I in keyof Args]: "signal" extends keyof NonNullable<Args[I]> ? Omit<Args[I], "signal"> : Args[I]
}

/** A resource's methods as Effects, and its lists as Streams. */
type AsEffects<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => infer Answer
    ? (
        ...args: WithoutSignal<Args>
      ) => Answer extends Promise<infer Value>
        ? Effect.Effect<Value, ClientError>
        : Answer extends List<infer Item>
          ? Stream.Stream<Item, ClientError>
          : never
    : never
}

type Use = <A>(work: (client: Client) => Promise<A>) => Effect.Effect<A, ClientError>
type StreamOf = <Item>(list: (client: Client) => List<Item>) => Stream.Stream<Item, ClientError>

/** Streams the values that the Promise API yields. The connection closes with the Stream. */
const streamed = <A>(client: Client, open: (client: Client) => AsyncGenerator<A>) =>
  Stream.suspend(() => {
    const closing = new AbortController()
    const close = () => closing.abort()
    const items = open(client.with({ signal: closing.signal }))
    // Ends a generator that waits at a `yield`, which the signal does not reach
    const end = Effect.promise(() => {
      close()
      return items.return(undefined).catch(() => {})
    })
    return Stream.paginate(undefined, () =>
      fromPromise((signal) => {
        signal.addEventListener("abort", close, { once: true })
        return items.next()
      }).pipe(
        Effect.map((item) =>
          item.done === true
            ? ([[], Option.none<undefined>()] as const)
            : ([[item.value], Option.some(undefined)] as const)
        )
      )
    ).pipe(Stream.ensuring(end))
  })

const tasksOf = (client: Client, use: Use, streamOf: StreamOf) => ({
  create: <Model extends ModelName>(
    model: Model,
    body: InputOf<Model>,
    options?: Options<CreateOptions>
  ) => use(({ tasks }) => tasks.create(model, body, options)),
  quote: <Model extends ModelName>(
    model: Model,
    body: InputOf<Model>,
    options?: Options<RequestOptions>
  ) => use(({ tasks }) => tasks.quote(model, body, options)),
  get: (task: TaskRef, options?: Options<RequestOptions>) =>
    use(({ tasks }) => tasks.get(task, options)),
  wait: (task: TaskRef, options?: Options<WaitOptions>) =>
    use(({ tasks }) => tasks.wait(task, options)),
  run: <Model extends ModelName>(
    model: Model,
    body: InputOf<Model>,
    options?: Options<CreateOptions & WaitOptions>
  ) => use(({ tasks }) => tasks.run(model, body, options)),
  /** The task now and after each change of state, until it ends. */
  watch: (task: TaskRef, options?: Options<NonNullable<Parameters<Client["tasks"]["watch"]>[1]>>) =>
    streamed(client, ({ tasks }) => tasks.watch(task, options)),
  cancel: (task: TaskRef, options?: Options<RequestOptions>) =>
    use(({ tasks }) => tasks.cancel(task, options)),
  list: (filter?: FilterOf<"GET /manage/v1/tasks">, options?: Options<RequestOptions>) =>
    streamOf(({ tasks }) => tasks.list(filter, options)),
  timeline: (id: string, options?: Options<RequestOptions>) =>
    use(({ tasks }) => tasks.timeline(id, options))
})

/**
 * A client of a gateway with one key. Uses Effect's clock and random numbers, and `FetchHttpClient.Fetch` for
 * requests.
 *
 *     const client = yield* GatewayClient
 *     const task = yield* client.tasks.run("text-to-image-max", { prompt: "A lighthouse at dawn" })
 */
export class GatewayClient extends Context.Service<
  GatewayClient,
  Effect.Success<ReturnType<typeof make>>
>()("generation-gateway/client/GatewayClient") {
  static readonly layer = (options: EffectClientOptions) =>
    Layer.effect(GatewayClient, make(options))

  /** Reads `GATEWAY_URL` and `GATEWAY_API_KEY`. */
  static readonly layerConfig = Layer.effect(
    GatewayClient,
    Effect.flatMap(
      Config.all({
        baseUrl: Config.String("GATEWAY_URL"),
        apiKey: Config.Redacted("GATEWAY_API_KEY")
      }),
      make
    )
  )
}
