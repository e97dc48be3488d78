import { Schema } from "effect"
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { Vendor } from "../../catalog/Vendors.ts"
import { variableOf } from "../../domain/Provider.ts"
import type { builtInProviders } from "../../domain/Provider.ts"
import type { MockRefusal } from "../../vendors/mock/MockScript.ts"
import { anthropic } from "./AnthropicProtocol.ts"
import { answerCall, isCall, isPaidCall } from "./Calls.ts"
import { dashscope } from "./DashScopeProtocol.ts"
import { describedProtocol } from "./DescribedProtocol.ts"
import { fal } from "./FalProtocol.ts"
import { gemini } from "./GeminiProtocol.ts"
import { openai } from "./OpenAiProtocol.ts"
import type { MadeFile, Protocol, Reply } from "./Protocol.ts"
import { replicate } from "./ReplicateProtocol.ts"
import { ScriptedVendor } from "./ScriptedVendor.ts"
import type { VendorServerOptions } from "./ScriptedVendor.ts"
import { readRequest } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

/** The supported vendors. */
export type VendorName = (typeof builtInProviders)[number]["name"]

/**
 * Which requests `failNext` applies to: a paid submit or call, the download of a result, or anything else, such as a
 * poll or a list of models.
 */
export type RequestKind = "submit" | "query" | "download"

/** A vendor on a port of 127.0.0.1 that speaks its own wire format. */
export interface VendorServer extends AsyncDisposable {
  readonly vendor: string
  /** `http://127.0.0.1:‹port›`, without a path. */
  readonly url: string
  /** The key that is accepted. */
  readonly key: string
  /** The variables with which a gateway connects to it, such as `FAL_API_KEY` and `FAL_BASE_URL`. */
  readonly env: Readonly<Record<string, string>>
  /** All requests except downloads of results, oldest first. */
  readonly requests: ReadonlyArray<VendorRequest>
  /** How many jobs were bought and paid calls answered. */
  readonly sold: number
  /** Refuses the next request of this kind once. With `AMBIGUOUS` the connection breaks. Default kind: a submit. */
  readonly failNext: (refusal: MockRefusal, kind?: RequestKind) => void
  /** Closes the port and all connections. */
  readonly stop: () => Promise<void>
}

const protocols: { readonly [name in VendorName]: Protocol } = {
  openai,
  anthropic,
  gemini,
  dashscope,
  fal,
  replicate
}

/** The path of each vendor's base URL. docs/reference/configuration.md#vendor-bases */
const basePaths: { readonly [name in VendorName]: string } = {
  openai: "/v1",
  anthropic: "",
  gemini: "",
  dashscope: "/api/v1",
  fal: "",
  replicate: "/v1"
}

/** An entry of `vendors` in a catalog file that has `jobs`. docs/vendors-as-files.md#job-vendors */
export type DescribedVendor = typeof Vendor.Encoded

const decodeVendor = Schema.decodeUnknownSync(Vendor)

const isBuiltIn = (name: string): name is VendorName => Object.hasOwn(protocols, name)

const servedBy = (which: VendorName | DescribedVendor) => {
  if (typeof which !== "string") {
    const vendor = decodeVendor(which)
    return { name: vendor.name, protocol: describedProtocol(vendor), basePath: "" }
  }
  if (!isBuiltIn(which)) throw new RangeError(`There is no vendor ${String(which)}`)
  return { name: which, protocol: protocols[which], basePath: basePaths[which] }
}

/**
 * Starts a vendor that follows a script, for programs that call vendors over HTTP: a gateway in another process, or a
 * vendor's own client. For a vendor that a catalog file describes, pass its entry. Rejects a script that the vendor's
 * format cannot express. docs/developing.md#vendor-servers, ADR 0216
 */
export const startVendorServer = async (
  which: VendorName | DescribedVendor,
  options: VendorServerOptions = {}
): Promise<VendorServer> => {
  const { basePath, name: vendor, protocol } = servedBy(which)
  const server = new Listening(vendor, protocol, options)
  await server.listen(options.port ?? 0)
  const { key, url } = server.state
  const variable = variableOf(vendor)
  const jwks = vendor === "fal" ? `;jwks=${url}/.well-known/jwks.json` : ""
  const stop = () => server.stop()
  return {
    vendor,
    url,
    key,
    env: {
      [`${variable}_API_KEY`]: `${key}${jwks}`,
      [`${variable}_BASE_URL`]: `${url}${basePath}`
    },
    requests: server.requests,
    get sold() {
      return server.state.jobs.size + server.calls
    },
    failNext: (refusal, kind = "submit") => server.fail(refusal, kind),
    stop,
    [Symbol.asyncDispose]: stop
  }
}

class Listening {
  readonly requests: Array<VendorRequest> = []
  calls = 0
  readonly state: ScriptedVendor
  readonly #name: string
  readonly #protocol: Protocol
  readonly #options: VendorServerOptions
  readonly #server: Server
  readonly #failures: Array<readonly [RequestKind, MockRefusal]> = []

  constructor(name: string, protocol: Protocol, options: VendorServerOptions) {
    this.#name = name
    this.#options = options
    this.#protocol = protocol
    this.state = new ScriptedVendor(name, this.#protocol, options)
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => request.socket.destroy())
    })
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(port, "127.0.0.1", resolve)
    })
    const address = this.#server.address()
    const own = typeof address === "object" ? (address?.port ?? port) : port
    this.state.url = `http://127.0.0.1:${own}`
  }

  async stop(): Promise<void> {
    this.state.stop()
    this.#server.closeAllConnections()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }

  fail(refusal: MockRefusal, kind: RequestKind): void {
    this.state.check(refusal)
    this.#failures.push([kind, refusal])
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming)
    const file = this.state.fileAt(request.path)
    if (file === undefined) this.requests.push(request)
    const stranger =
      file === undefined ? this.#protocol.stranger(request, this.state.key) : undefined
    if (stranger !== undefined) return write(response, stranger)
    const isPaid = this.#protocol.isSubmit(request) || isPaidCall(this.#name, request)
    const refusal = this.#refusal(request, file, isPaid)
    if (refusal !== undefined) await this.state.wait(refusal.after)
    if (refusal?.error.class === "AMBIGUOUS") {
      // The job is bought, but the client gets no response
      await this.#protocol.respond(request, this.state)
      return void incoming.socket.destroy()
    }
    if (refusal !== undefined) {
      const { error } = refusal
      return write(response, this.#protocol.refusal(error.class, error.message) ?? unknown)
    }
    if (file !== undefined) return write(response, { status: 200, file })
    const reply = await this.#protocol.respond(request, this.state)
    if (reply !== undefined) return write(response, reply)
    if (!isCall(this.#name, request)) return write(response, unknown)
    return isPaid ? this.#sell(request, response) : this.#answer(request, response)
  }

  #refusal(
    request: VendorRequest,
    file: MadeFile | undefined,
    isPaid: boolean
  ): MockRefusal | undefined {
    const kind = file === undefined ? (isPaid ? "submit" : "query") : "download"
    const at = this.#failures.findIndex(([of]) => of === kind)
    const [asked] = this.#failures.splice(at, at < 0 ? 0 : 1)
    return asked?.[1] ?? (isPaid ? this.state.refusalOf(request) : undefined)
  }

  async #sell(request: VendorRequest, response: ServerResponse): Promise<void> {
    const step = this.state.take(request)
    if (step !== undefined) await this.state.wait(step.after)
    if (step?._tag === "JobFails") {
      const { error } = step
      return write(response, this.#protocol.refusal(error.class, error.message) ?? unknown)
    }
    this.calls += 1
    return this.#answer(request, response)
  }

  async #answer(request: VendorRequest, response: ServerResponse): Promise<void> {
    const model = this.#protocol.modelOf(request)
    const answer = await answerCall(this.#name, request, model, this.#options.answer)
    response.writeHead(answer.status, answer.headers)
    if (answer.body instanceof Readable) answer.body.pipe(response)
    else response.end(answer.body)
  }
}

const unknown: Reply = { status: 404, json: {} }

const write = (
  response: ServerResponse,
  { bytes, events, file, headers, json, status }: Reply
): void => {
  if (events !== undefined) {
    response.writeHead(status, { "content-type": "text/event-stream; charset=utf-8" })
    Readable.from(events).pipe(response)
    return
  }
  const body = file?.bytes ?? bytes ?? Buffer.from(JSON.stringify(json ?? {}))
  const type = file?.mime ?? (bytes === undefined ? "application/json" : "application/octet-stream")
  response.writeHead(status, { "content-type": type, "content-length": body.length, ...headers })
  response.end(body)
}
