/** The vendors' chat routes: how to send requests and read streams. docs/reference/passthrough.md#usage */

/** A picture in a message. */
export interface Picture {
  readonly mediaType: string
  /** In Base64. */
  readonly data: string
}

export interface Message {
  readonly role: "user" | "assistant"
  readonly text: string
  readonly pictures?: ReadonlyArray<Picture> | undefined
}

export interface ChatRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

interface Asked {
  readonly path: string
  readonly model: string
  readonly system: string
  readonly messages: ReadonlyArray<Message>
  readonly maxTokens: number
  /** Sent only if it is set, because some models refuse it. */
  readonly temperature?: number | undefined
}

interface Dialect {
  readonly matches: (path: string) => boolean
  readonly request: (asked: Asked) => ChatRequest
  /** The part of the response in an event. */
  readonly piece: (event: unknown) => string
}

/** A member of an unvalidated value. */
const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown => {
  let found: unknown = value
  for (const key of path) {
    if (typeof found !== "object" || found === null) return undefined
    found = new Map(Object.entries(found)).get(String(key))
  }
  return found
}

const textAt = (value: unknown, ...path: ReadonlyArray<string | number>): string => {
  const found = at(value, ...path)
  return typeof found === "string" ? found : ""
}

/** As a data URL. */
export const urlOf = ({ data, mediaType }: Picture): string => `data:${mediaType};base64,${data}`

/** The content of a message: text alone, or parts if there are pictures. */
const plain = (
  messages: ReadonlyArray<Message>,
  partOf: (picture: Picture) => Readonly<Record<string, unknown>>
) =>
  messages.map(({ pictures = [], role, text }) => ({
    role,
    content:
      pictures.length === 0
        ? text
        : [...pictures.map(partOf), ...(text === "" ? [] : [{ type: "text", text }])]
  }))

const openAi: Dialect = {
  matches: (path) => path.endsWith("/chat/completions"),
  request: ({ maxTokens, messages, model, path, system, temperature }) => ({
    path,
    headers: {},
    body: {
      model,
      messages: [
        ...(system === "" ? [] : [{ role: "system", content: system }]),
        ...plain(messages, (it) => ({ type: "image_url", image_url: { url: urlOf(it) } }))
      ],
      max_completion_tokens: maxTokens,
      ...(temperature === undefined ? {} : { temperature }),
      stream: true
    }
  }),
  piece: (event) => textAt(event, "choices", 0, "delta", "content")
}

const anthropic: Dialect = {
  matches: (path) => path.endsWith("/messages"),
  request: ({ maxTokens, messages, model, path, system, temperature }) => ({
    path,
    headers: { "anthropic-version": "2023-06-01" },
    body: {
      model,
      ...(system === "" ? {} : { system }),
      messages: plain(messages, ({ data, mediaType }) => ({
        type: "image",
        source: { type: "base64", media_type: mediaType, data }
      })),
      max_tokens: maxTokens,
      ...(temperature === undefined ? {} : { temperature }),
      stream: true
    }
  }),
  piece: (event) => textAt(event, "delta", "text")
}

const gemini: Dialect = {
  matches: (path) => path.endsWith(":generateContent"),
  request: ({ maxTokens, messages, path, system, temperature }) => ({
    path: `${path.replace(/:generateContent$/u, ":streamGenerateContent")}?alt=sse`,
    headers: {},
    body: {
      ...(system === "" ? {} : { systemInstruction: { parts: [{ text: system }] } }),
      contents: messages.map(({ pictures = [], role, text }) => ({
        role: role === "user" ? "user" : "model",
        parts: [
          ...pictures.map(({ data, mediaType }) => ({ inlineData: { mimeType: mediaType, data } })),
          ...(text === "" && pictures.length > 0 ? [] : [{ text }])
        ]
      })),
      generationConfig: {
        maxOutputTokens: maxTokens,
        ...(temperature === undefined ? {} : { temperature })
      }
    }
  }),
  piece: (event) => {
    const parts = at(event, "candidates", 0, "content", "parts")
    return Array.isArray(parts) ? parts.map((it) => textAt(it, "text")).join("") : ""
  }
}

const dialects = [openAi, anthropic, gemini]

/** The dialect of a model's route. `undefined`: it is not a chat. */
export const dialectOf = (path: string): Dialect | undefined =>
  dialects.find(({ matches }) => matches(path))

/** The error in an event of a stream. */
export const failureIn = (event: unknown): string | undefined => {
  const error = at(event, "error")
  if (error === undefined || error === null) return undefined
  return textAt(error, "message") || JSON.stringify(error)
}

/** The values of a stream of server-sent events, as they arrive. */
export const eventsOf = async function* (
  stream: ReadableStream<Uint8Array>
): AsyncGenerator<unknown, void> {
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  let rest = ""
  while (true) {
    // oxlint-disable-next-line no-await-in-loop -- one piece after the other
    const { done, value } = await reader.read()
    rest += decoder.decode(value, { stream: !done })
    const events = `${rest}${done ? "\n\n" : ""}`.split(/\r?\n\r?\n/u)
    rest = events.pop() ?? ""
    for (const event of events) {
      const data = event
        .split(/\r?\n/u)
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice("data:".length).trim())
        .join("\n")
      if (data !== "" && data !== "[DONE]") yield JSON.parse(data)
    }
    if (done) return
  }
}
