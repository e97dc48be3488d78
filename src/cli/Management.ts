import { Config, Context, Effect, Layer, Option, Schema } from "effect"
import type { Redacted } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { readSecret } from "../config/Setting.ts"
import { problemHelp } from "../domain/ErrorHelp.ts"
import { CommandFault, exitCode, failed, wrongUsage } from "./terminal/Fault.ts"
import { Key, Token, Url } from "./terminal/Settings.ts"

/** Who calls: `either` is the user, if there is a key, else the operator. */
export type Caller = "user" | "operator" | "either" | "anyone"

export interface ManageRequest {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE"
  /** With its leading slash, below the address of the service. */
  readonly path: string
  readonly as: Caller
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Schema.Json | undefined
  readonly headers?: Readonly<Record<string, string>>
}

type Decoder = Schema.ConstraintDecoder<unknown>

/** The HTTP API of a service, as all commands call it. docs/reference/http.md#management-api */
export class Management extends Context.Service<
  Management,
  {
    /** Without a slash at the end. */
    readonly url: string
    /** A response of success; what the service refused fails with its problem and a remedy. */
    readonly open: (
      request: ManageRequest
    ) => Effect.Effect<HttpClientResponse.HttpClientResponse, CommandFault>
    /** The body of the response; `null` if there is none. */
    readonly send: (request: ManageRequest) => Effect.Effect<Schema.Json, CommandFault>
    /** The same, also decoded. */
    readonly read: <S extends Decoder>(
      request: ManageRequest,
      schema: S
    ) => Effect.Effect<{ readonly document: Schema.Json; readonly value: S["Type"] }, CommandFault>
  }
>()("gateway/cli/Management") {
  /** At `--url`, with `--key` and `--token`, or as the environment says. docs/cli.md#settings */
  static readonly layer = Layer.effect(
    Management,
    Effect.gen(function* () {
      const http = yield* HttpClient.HttpClient
      const key = yield* secretOf(yield* Key, "GATEWAY_KEY")
      const token = yield* secretOf(yield* Token, "ADMIN_TOKEN")
      return make(http, yield* address, key, token)
    })
  )
}

/** A flag, else the variable. */
const secretOf = (flag: Option.Option<Redacted.Redacted>, name: string) =>
  Option.isSome(flag)
    ? Effect.succeed(flag)
    : Effect.mapError(readSecret(name, "set a secret"), ({ message }) => wrongUsage(message))

const text = (name: string) => Config.option(Config.NonEmptyString(name))

/** `--url`, else `GATEWAY_URL`, else `PORT` of this machine. */
export const address = Effect.gen(function* () {
  const given = yield* Url
  const named = Option.isSome(given) ? given : yield* text("GATEWAY_URL")
  // A wrong value is the service's fault, which `doctor` names
  const port = Option.getOrElse(
    Option.filter(yield* text("PORT"), (it) => /^\d{1,5}$/u.test(it)),
    () => "8080"
  )
  const url = Option.getOrElse(named, () => `http://127.0.0.1:${port}`)
  if (!/^https?:\/\/[^\s/]/u.test(url) || !URL.canParse(url)) {
    return yield* wrongUsage(
      `${JSON.stringify(url)} is no address of a service`,
      "Set GATEWAY_URL or --url to an address such as http://127.0.0.1:8080"
    )
  }
  const { password, username } = new URL(url)
  if (username !== "" || password !== "") {
    return yield* wrongUsage("The address of the service has a user name or password", keyRemedy)
  }
  return url.replace(/\/+$/u, "")
}).pipe(Effect.catchTag("ConfigError", ({ message }) => wrongUsage(message)))

type Secret = Option.Option<Redacted.Redacted>

const make = (
  http: HttpClient.HttpClient,
  url: string,
  key: Secret,
  token: Secret
): Management["Service"] => {
  const open = Effect.fn("Management.open")(function* (request: ManageRequest) {
    const credential = yield* credentialOf(request.as, key, token)
    const response = yield* http
      .execute(requestOf(url, request, credential))
      .pipe(Effect.mapError((error) => unreachable(url, error)))
    if (response.status >= 200 && response.status < 300) return response
    return yield* Effect.flatMap(bodyOf(url, response), (body) =>
      Effect.fail(refusal(url, response, body, nameOf(request.as, key)))
    )
  })
  const send = (request: ManageRequest) =>
    Effect.flatMap(open(request), (response) => bodyOf(url, response))
  return Management.of({
    url,
    open,
    send,
    read: (request, schema) =>
      Effect.flatMap(send(request), (document) =>
        Schema.decodeEffect(schema)(document).pipe(
          Effect.map((value) => ({ document, value })),
          Effect.mapError(() => foreign(url, `${request.path} has another form`))
        )
      )
  })
}

const requestOf = (
  url: string,
  { body, headers, method = "GET", path, query = {} }: ManageRequest,
  credential: Secret
) => {
  const request = HttpClientRequest.make(method)(`${url}${path}`, {
    headers: { accept: "application/json", ...headers }
  }).pipe(HttpClientRequest.setUrlParams(withoutAbsent(query)))
  const sent = body === undefined ? request : HttpClientRequest.bodyJsonUnsafe(request, body)
  return Option.match(credential, {
    onNone: () => sent,
    onSome: (value) => HttpClientRequest.bearerToken(sent, value)
  })
}

const withoutAbsent = (query: Readonly<Record<string, string | undefined>>) =>
  Object.entries(query).flatMap(([name, value]): ReadonlyArray<readonly [string, string]> =>
    value === undefined ? [] : [[name, value]]
  )

const keyRemedy = "Set GATEWAY_KEY to an API key with the scopes of the command, or give --key"
const tokenRemedy =
  "Set ADMIN_TOKEN to the token that the service has, or give --token; an embedded service keeps its own in DATA_DIR/admin-token"

const credentialOf = (as: Caller, key: Secret, token: Secret) => {
  if (as === "anyone") return Effect.succeed(Option.none<Redacted.Redacted>())
  if (as === "operator") {
    return Option.isSome(token)
      ? Effect.succeed(token)
      : wrongUsage("The command is the operator's, and there is no token", tokenRemedy)
  }
  const found = as === "either" ? Option.orElse(key, () => token) : key
  return Option.isSome(found)
    ? Effect.succeed(found)
    : wrongUsage("The command is a user's, and there is no API key", keyRemedy)
}

/** The variable of the credential that was sent. */
const nameOf = (as: Caller, key: Secret) =>
  as === "operator" || (as === "either" && Option.isNone(key)) ? "ADMIN_TOKEN" : "GATEWAY_KEY"

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const bodyOf = (url: string, response: HttpClientResponse.HttpClientResponse) =>
  response.text.pipe(
    Effect.mapError((error) => unreachable(url, error)),
    Effect.flatMap((body) =>
      body === ""
        ? Effect.succeed(null)
        : Effect.mapError(Effect.fromOption(decodeJson(body)), () =>
            foreign(url, `it answered ${response.status} and no JSON`)
          )
    )
  )

const Problem = Schema.Struct({
  title: Schema.String,
  detail: Schema.String,
  code: Schema.Int,
  errors: Schema.optionalKey(
    Schema.Array(Schema.Struct({ pointer: Schema.String, detail: Schema.String }))
  )
})
const decodeProblem = Schema.decodeUnknownOption(Problem)

const remedies: ReadonlyMap<number, { readonly remedy: string }> = new Map(
  Object.entries(problemHelp).map(([code, help]) => [Number(code), help])
)

/** The credential itself is wrong. docs/reference/errors.md#problem-codes */
const credentialCodes = new Set([1001, 1002, 1003, 1004])

/** What the service refused, with its remedy. */
const refusal = (
  url: string,
  response: HttpClientResponse.HttpClientResponse,
  body: Schema.Json,
  credential: string
): CommandFault => {
  const problem = decodeProblem(body)
  if (Option.isNone(problem)) return foreign(url, `it answered ${response.status}`)
  const { code, detail, errors = [], title } = problem.value
  const trace = response.headers["traceparent"]?.split("-")[1]
  const lines = [
    `${title}: ${detail} (code ${code}, HTTP ${response.status}${trace === undefined ? "" : `, trace ${trace}`})`,
    ...errors.map((fault) => `  ${fault.pointer}: ${fault.detail}`)
  ]
  const remedy = remedies.get(code)?.remedy
  return new CommandFault({
    message: lines.join("\n"),
    remedy: credentialCodes.has(code) ? `${credential}: ${remedy ?? "set another one"}` : remedy,
    problem: body
  })
}

/** Not worth another try. */
export const foreign = (url: string, what: string) =>
  new CommandFault({
    message: `${url} is no gateway of this version: ${what}`,
    remedy: "Set GATEWAY_URL or --url to the address of the service",
    code: exitCode.failed
  })

const unreachable = (url: string, error: HttpClientError.HttpClientError) =>
  failed(
    `${url} cannot be reached (${reasonOf(error.reason)})`,
    "Start the service with `gateway serve`, or set GATEWAY_URL or --url to where it is"
  )

/** Node puts the system's code into the cause of the cause. */
const reasonOf = (error: unknown, depth = 0): string => {
  if (typeof error !== "object" || error === null || depth > 4) return "no connection"
  if ("code" in error && typeof error.code === "string") return error.code
  return "cause" in error ? reasonOf(error.cause, depth + 1) : "no connection"
}
