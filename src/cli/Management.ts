import { Config, Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { GatewayClient } from "../client/effect.ts"
import type { ClientError } from "../client/effect.ts"
import { readSecret } from "../config/Setting.ts"
import type { Api } from "../contract/Api.ts"
import { problemHelp } from "../domain/ErrorHelp.ts"
import { CommandFault, wrongUsage } from "./terminal/Fault.ts"
import type { Reason } from "./terminal/Fault.ts"
import { Key, Token, Url } from "./terminal/Settings.ts"

/** The caller. `either`: the user if there is a key, otherwise the operator. */
export type Caller = "user" | "operator" | "either"

type Endpoint<Name extends string> = HttpApiEndpoint.WithIdentifier<
  HttpApiGroup.Endpoints<(typeof Api)["groups"][keyof (typeof Api)["groups"]]>,
  Name
>

/** An operation of the management API, by its id. */
export type Operation = HttpApiGroup.Endpoints<
  (typeof Api)["groups"][keyof (typeof Api)["groups"]]
>["identifier"]

/** The JSON form of a schema of the contract. */
type Sent<S> =
  S extends Schema.toCodecJson<infer Of>
    ? Of["Encoded"]
    : S extends Schema.toCodecStringTree<infer Of>
      ? Of["Encoded"]
      : never

/** The JSON of a response. Excludes text, because no command requests a list as a CSV file. */
export type Answer<Name extends Operation> = Exclude<
  Sent<HttpApiEndpoint.Success<Endpoint<Name>>>,
  string
>

export interface ManageRequest<Name extends Operation> {
  readonly as: Caller
  /** Values for the path parameters. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly payload?: Sent<HttpApiEndpoint.Payload<Endpoint<Name>>>
  readonly idempotencyKey?: string | undefined
  /** The timeout of an attempt in milliseconds. Default 60,000. */
  readonly timeout?: number | undefined
}

type Client = GatewayClient["Service"]

/** A service that commands call through the client, with its retries. docs/client.md */
export class Management extends Context.Service<
  Management,
  {
    /** The address, without a trailing slash. */
    readonly url: string
    /** Runs code with the client and adds a remedy to its errors. */
    readonly use: <A, R>(
      as: Caller,
      work: (client: Client) => Effect.Effect<A, ClientError, R>,
      /** What the id in the path is of, such as `tasks`. */
      noun?: string
    ) => Effect.Effect<A, CommandFault, R>
    /** Calls an operation and returns the body of the response, checked against the contract. */
    readonly call: <Name extends Operation>(
      operation: Name,
      request: ManageRequest<Name>
    ) => Effect.Effect<Answer<Name>, CommandFault>
  }
>()("gateway/cli/Management") {
  /** Uses `--url`, `--key` and `--token`, or the environment. docs/cli.md#settings */
  static readonly layer = Layer.effect(
    Management,
    Effect.gen(function* () {
      const url = yield* address
      const key = yield* secretOf(yield* Key, "GATEWAY_API_KEY")
      const token = yield* secretOf(yield* Token, "ADMIN_TOKEN")
      return make(url, yield* clientOf(url, key), yield* clientOf(url, token))
    })
  )
}

/** The value of a flag or, without it, of its variable. */
const secretOf = Effect.fnUntraced(function* (
  flag: Option.Option<Redacted.Redacted>,
  name: string
) {
  const found = Option.isSome(flag)
    ? flag
    : yield* Effect.mapError(readSecret(name, "set a secret"), ({ message }) => wrongUsage(message))
  if (Option.isSome(found) && !/^[\x21-\x7e]+$/u.test(Redacted.value(found.value))) {
    return yield* wrongUsage(
      `${name} is empty or contains an invalid character`,
      "Check it for a space or a line break"
    )
  }
  return found
})

const text = (name: string) => Config.option(Config.NonEmptyString(name))

/** `--url`, or else `GATEWAY_URL`, or else this machine with `PORT`. */
export const address = Effect.gen(function* () {
  const given = yield* Url
  const named = Option.isSome(given) ? given : yield* text("GATEWAY_URL")
  // An invalid value is a fault of the service, which `doctor` reports
  const port = Option.getOrElse(
    Option.filter(yield* text("PORT"), (it) => /^\d{1,5}$/u.test(it)),
    () => "8080"
  )
  const url = Option.getOrElse(named, () => `http://127.0.0.1:${port}`)
  if (!/^https?:\/\/[^\s/?#]+[^\s?#]*$/u.test(url) || !URL.canParse(url)) {
    return yield* wrongUsage(
      `${JSON.stringify(url)} is not an address of a service`,
      "Set GATEWAY_URL or --url to an address such as http://127.0.0.1:8080"
    )
  }
  const { password, username } = new URL(url)
  if (username !== "" || password !== "") {
    return yield* wrongUsage("The address of the service has a user name or password", keyRemedy)
  }
  return url.replace(/\/+$/u, "")
}).pipe(Effect.catchTag("ConfigError", ({ message }) => wrongUsage(message)))

/** A user waits at the terminal, so only three attempts are made, within a second or two. */
const maxRetries = 2

const clientOf = (baseUrl: string, secret: Option.Option<Redacted.Redacted>) =>
  Option.match(secret, {
    onNone: () => Effect.succeedNone,
    onSome: (apiKey) =>
      Effect.map(Layer.build(GatewayClient.layer({ apiKey, baseUrl, maxRetries })), (context) =>
        Option.some(Context.get(context, GatewayClient))
      )
  })

type Known = Option.Option<Client>

const make = (url: string, user: Known, operator: Known): Management["Service"] => {
  const use: Management["Service"]["use"] = (as, work, noun) =>
    Effect.flatMap(clientFor(as, user, operator), ({ client, name }) =>
      Effect.mapError(work(client), (error) => faultOfClient(url, name, error, noun))
    )
  return Management.of({ url, use, call: makeCall(url, use) })
}

/** Builds a function that calls operations of the management API through a client. */
export const makeCall = (
  url: string,
  use: Management["Service"]["use"]
): Management["Service"]["call"] => {
  function call<Name extends Operation>(
    operation: Name,
    request: ManageRequest<Name>
  ): Effect.Effect<Answer<Name>, CommandFault>
  function call(
    operation: Operation,
    { as, params = {}, payload: body, ...options }: ManageRequest<never>
  ): Effect.Effect<unknown, CommandFault> {
    return Effect.gen(function* () {
      const { method, path, success } = yield* endpointOf(operation)
      const route = path.replaceAll(/:(\w+)/gu, (_, name: string) =>
        encodeURIComponent(params[name] ?? "")
      )
      const answer = yield* use(
        as,
        (client) => client.request(`${method} /${route.slice(1)}`, { ...options, body }),
        /\/([\w-]+)\/:id\b/u.exec(path)?.[1]
      )
      if (!Schema.is(success)(answer ?? null)) {
        return yield* foreign(url, `${operation} has an unexpected form`)
      }
      return answer
    })
  }
  return call
}

const methods = ["GET", "POST", "PATCH", "DELETE"] as const

/**
 * The endpoint of an operation. The contract contains the schemas of all bodies, so it is only loaded by the first
 * call.
 */
const endpointOf = (operation: Operation) =>
  Effect.promise(async () => {
    const { Api } = await import("../contract/Api.ts")
    const endpoint = Object.values(Api.groups)
      .map(({ endpoints }): Readonly<Record<string, HttpApiEndpoint.Top>> => endpoints)
      .flatMap((endpoints) => endpoints[operation] ?? [])[0]
    if (endpoint === undefined) throw new TypeError(`${operation} is not an operation`)
    const { path, success } = endpoint
    const method = methods.find((it) => it === endpoint.method) ?? "GET"
    return { method, path, success: Schema.toEncoded(Schema.Union([...success])) }
  })

const keyRemedy = "Set GATEWAY_API_KEY to an API key with the scopes of the command, or give --key"
const tokenRemedy =
  "Set ADMIN_TOKEN to the token of the service, or give --token; an embedded service stores its token in DATA_DIR/admin-token"

/** The client for a caller, and the name of its credential's variable. */
const clientFor = (as: Caller, user: Known, operator: Known) => {
  const isOperator = as === "operator" || (as === "either" && Option.isNone(user))
  const found = isOperator ? operator : user
  if (Option.isSome(found)) {
    return Effect.succeed({
      client: found.value,
      name: isOperator ? "ADMIN_TOKEN" : "GATEWAY_API_KEY"
    })
  }
  return as === "operator"
    ? wrongUsage("This command is for the operator, and no token is set", tokenRemedy)
    : wrongUsage("This command is for a user, and no API key is set", keyRemedy)
}

/** Whether it is unknown if the request took effect. ADR 0218 */
const isUnclear = ({ _tag }: ClientError): boolean =>
  _tag === "ConnectionError" || _tag === "ServerError"

const remedies: ReadonlyMap<number, { readonly remedy: string }> = new Map(
  Object.entries(problemHelp).map(([code, help]) => [Number(code), help])
)

/** How to find the id of a resource, by the noun in its path. */
const idsOf: Readonly<Record<string, string>> = {
  users: "`gateway users list` shows the ids of users",
  "api-keys": "`gateway keys list` shows the ids of keys",
  tasks: "`gateway tasks list` shows the ids of tasks",
  "webhook-endpoints": "`gateway endpoints list` shows the ids of endpoints",
  "webhook-deliveries":
    "Give the id of a delivery (whd_…) or of an event (evt_…): receivers get the event's, the console lists both"
}

/** Remedies for a command where those of the API name parts of a request. */
const remedyOf = (code: number, noun: string | undefined): string | undefined => {
  if (code === 2005) return noun === undefined ? "Check the id" : (idsOf[noun] ?? "Check the id")
  if (code === 2001) return "Correct the values named above; --help of the command describes them"
  return remedies.get(code)?.remedy
}

/** Problem codes that mean that the credential itself is wrong. docs/reference/errors.md#problem-codes */
const credentialCodes = new Set([1001, 1002, 1003, 1004])

/** What a proxy responds with, without a problem document, while the service does not respond to it. */
const proxyStatuses = new Set([502, 503, 504])

const problemIn = Schema.decodeUnknownOption(Schema.Json)

/** The service's refusal with its remedy, or that the service could not be reached. */
const faultOf = (
  url: string,
  credential: string,
  error: ClientError,
  noun: string | undefined
): Reason => {
  const { code, detail, faults, status, title, traceId } = error
  if (error._tag === "ConnectionError") {
    return {
      message: `${url} cannot be reached (${systemCodeOf(error) ?? error.detail})`,
      remedy: "Start the service with `gateway serve`, or set GATEWAY_URL or --url to its address"
    }
  }
  if (code === undefined || error.problem === undefined) {
    if (proxyStatuses.has(status)) {
      return {
        message: `${url} cannot be reached: a proxy in front of it responded with ${status}`,
        remedy: "Repeat the command when the service is running; the proxy's log has the reason"
      }
    }
    const isSuccess = status >= 200 && status < 300
    return foreignReason(
      url,
      isSuccess
        ? "its response has an unexpected form"
        : `it responded with ${status === 0 ? "a redirect" : status}`
    )
  }
  const lines = [
    `${title}: ${detail} (code ${code}, HTTP ${status}${traceId === undefined ? "" : `, trace ${traceId}`})`,
    ...faults.map((fault) => `  ${fault.pointer}: ${fault.detail}`)
  ]
  const remedy = remedyOf(code, noun)
  return {
    message: lines.join("\n"),
    remedy: credentialCodes.has(code) ? `${credential}: ${remedy ?? "set another one"}` : remedy,
    problem: Option.getOrUndefined(problemIn(error.problem))
  }
}

export const faultOfClient = (url: string, credential: string, error: ClientError, noun?: string) =>
  new CommandFault({ ...faultOf(url, credential, error, noun), isUnclear: isUnclear(error) })

const foreignReason = (url: string, what: string): Reason => ({
  message: `${url} is not a gateway of this version: ${what}`,
  remedy: "Set GATEWAY_URL or --url to the address of the service"
})

export const foreign = (url: string, what: string) => new CommandFault(foreignReason(url, what))

/** The system's error code, which Node puts into the cause of the cause. */
const systemCodeOf = (error: unknown, depth = 0): string | undefined => {
  if (typeof error !== "object" || error === null || depth > 4) return undefined
  if ("code" in error && typeof error.code === "string") return error.code
  return "cause" in error ? systemCodeOf(error.cause, depth + 1) : undefined
}
