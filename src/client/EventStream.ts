import { bounded } from "./Clock.ts"
import { notTheGateway } from "./Task.ts"
import type { ClientRequest, Transport } from "./Transport.ts"

type Read = () => Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>

/**
 * The `data` of each server-sent event; comments and other fields are skipped. `read` returns the next chunk. `onId`
 * gets the `id` of each block before its event, including blocks without data.
 */
export async function* dataOf(
  read: Read,
  onId: (id: string) => void = () => {}
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ""
  let data: Array<string> = []
  let id: string | undefined
  for (;;) {
    const { done, value } = await read()
    rest += decoder.decode(value, { stream: !done })
    // A carriage return at the end of the chunk may be the first half of a line break
    const lines = rest.split(done ? /\r\n|\r|\n/u : /\r\n|\r(?!$)|\n/u)
    rest = lines.pop() ?? ""
    for (const line of lines) {
      const [, field, text = ""] = /^(data|id)(?:: ?(.*))?$/su.exec(line) ?? []
      if (field === "data") data.push(text)
      if (field === "id") id = text
      if (line !== "") continue
      if (id !== undefined) onId(id)
      id = undefined
      if (data.length === 0) continue
      yield data.join("\n")
      data = []
    }
    if (done) return
  }
}

/**
 * A stream without data for this long is broken, because the gateway sends a comment every 15 seconds.
 * docs/reference/tasks.md#event-stream
 */
const silenceMillis = 45_000

/**
 * The `data` of a response's events, until it ends, is cut off or falls silent. Rejects like `Transport.open`, and if
 * the response is not an event stream.
 */
export async function* openEvents(
  transport: Transport,
  request: ClientRequest,
  onId?: (id: string) => void
): AsyncGenerator<string> {
  const { signal } = transport.settings(request)
  const closing = new AbortController()
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    const headers = { ...request.headers, accept: "text/event-stream" }
    const response = await transport.open({ ...request, headers }, closing.signal)
    const type = response.headers.get("content-type")
    if (type?.startsWith("text/event-stream") !== true || response.body === null) {
      throw notTheGateway(response.status)
    }
    const opened = response.body.getReader()
    reader = opened
    const { clock } = transport
    const bounds = { clock, signal, timeout: silenceMillis, late: () => undefined }
    const read = () =>
      bounded(bounds, () => opened.read()).catch(() => {
        signal?.throwIfAborted()
        return { done: true }
      })
    yield* dataOf(read, onId)
  } finally {
    closing.abort()
    reader?.cancel().catch(() => {})
  }
}
