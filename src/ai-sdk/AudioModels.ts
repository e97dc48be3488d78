import type {
  SharedV4Warning,
  SpeechModelV4,
  SpeechModelV4CallOptions,
  TranscriptionModelV4,
  TranscriptionModelV4CallOptions
} from "@ai-sdk/provider"
import { maxCostHeaders } from "../client/Task.ts"
import { responseOf, sent, withClientErrors } from "./Connection.ts"
import type { Connection } from "./Connection.ts"
import { optionsOf } from "./Options.ts"

/**
 * The gateway ends a call whose vendor stays silent (`UPSTREAM_TIMEOUT`); giving up earlier would lose what is paid for.
 */
const timeout = Infinity

/**
 * A speech model that uses `/v1/audio/speech`. Requests are sent only once, because a repetition would be charged
 * again.
 */
export const makeSpeechModel = (connection: Connection, modelId: string): SpeechModelV4 => ({
  specificationVersion: "v4",
  provider: "generation-gateway.speech",
  modelId,
  doGenerate: async (options) => {
    const { abortSignal: signal, headers, instructions, outputFormat, providerOptions } = options
    const { speed, text, voice } = options
    const { fields, maxCost } = optionsOf(providerOptions)
    const request = {
      method: "POST",
      path: "/v1/audio/speech",
      headers: { ...sent(headers), ...maxCostHeaders(connection.serviceName, maxCost) },
      body: JSON.stringify({
        model: modelId,
        input: text,
        voice: voice ?? "alloy",
        response_format: outputFormat,
        instructions,
        speed,
        ...fields
      }),
      isRepeatable: false,
      timeout,
      signal
    }
    const closing = signal ?? new AbortController().signal
    const { audio, received } = await withClientErrors(signal, async () => {
      const response = await connection.transport.open(request, closing)
      return {
        audio: new Uint8Array(await response.arrayBuffer()),
        received: Object.fromEntries(response.headers)
      }
    })
    return {
      audio,
      warnings: warningsOf(options),
      response: { ...responseOf(modelId), headers: received }
    }
  }
})

const warningsOf = ({ language }: SpeechModelV4CallOptions): Array<SharedV4Warning> =>
  language === undefined
    ? []
    : [
        {
          type: "unsupported",
          feature: "language",
          details: "Models of speech read the language from the text"
        }
      ]

/**
 * A transcription model that uses `/v1/audio/transcriptions`. Requests are sent only once, because a repetition would
 * be charged again.
 */
export const makeTranscriptionModel = (
  connection: Connection,
  modelId: string
): TranscriptionModelV4 => ({
  specificationVersion: "v4",
  provider: "generation-gateway.transcription",
  modelId,
  doGenerate: async (options) => {
    const { abortSignal: signal, headers, providerOptions } = options
    const { fields, maxCost } = optionsOf(providerOptions)
    const reply = await connection.transport.send({
      method: "POST",
      path: "/v1/audio/transcriptions",
      headers: { ...sent(headers), ...maxCostHeaders(connection.serviceName, maxCost) },
      body: formOf(modelId, options, fields),
      isRepeatable: false,
      timeout,
      signal
    })
    // The formats `text`, `srt` and `vtt` are not JSON
    const transcript = typeof reply.body === "string" ? { text: reply.body } : reply.body
    if (!isTranscript(transcript)) throw new Error("The response is not a transcript")
    const { duration, language, segments = [], text, words } = transcript
    return {
      text,
      segments: segments.map(({ end, start, text }) => ({
        text,
        startSecond: start,
        endSecond: end
      })),
      ...(words === undefined
        ? {}
        : {
            words: words.map(({ end, start, word }) => ({
              text: word,
              startSecond: start,
              endSecond: end
            }))
          }),
      language,
      durationInSeconds: duration,
      warnings: [],
      response: { ...responseOf(modelId), headers: Object.fromEntries(reply.headers) }
    }
  }
})

/** A response in the format `json`, or `verbose_json`, which has all members but the text in addition. */
interface Transcript {
  readonly text: string
  readonly language?: string
  readonly duration?: number
  readonly segments?: ReadonlyArray<{ readonly text: string } & Span>
  readonly words?: ReadonlyArray<{ readonly word: string } & Span>
}

const isTranscript = (body: unknown): body is Transcript =>
  typeof body === "object" && body !== null && "text" in body && typeof body.text === "string"

interface Span {
  readonly start: number
  readonly end: number
}

const formOf = (
  model: string,
  { audio, mediaType, timestampGranularities = [] }: TranscriptionModelV4CallOptions,
  fields: Readonly<Record<string, unknown>>
): FormData => {
  const bytes =
    typeof audio === "string" ? Uint8Array.from(atob(audio), (it) => it.charCodeAt(0)) : audio
  const form = new FormData()
  form.append("model", model)
  // Only Whisper models support `verbose_json`
  const isVerbose = model.includes("whisper") || timestampGranularities.length > 0
  if (isVerbose && fields["response_format"] === undefined) {
    form.append("response_format", "verbose_json")
  }
  for (const unit of timestampGranularities) form.append("timestamp_granularities[]", unit)
  for (const [name, value] of Object.entries(fields)) appendField(form, name, value)
  const file = new Blob([bytes.slice()], { type: mediaType })
  form.append("file", file, `audio.${extensionOf(mediaType)}`)
  return form
}

/** Writes lists as `name[]` and objects as `name[member]`, as OpenAI's clients do. */
const appendField = (form: FormData, name: string, value: unknown): void => {
  if (Array.isArray(value)) {
    for (const item of value) appendField(form, `${name}[]`, item)
  } else if (typeof value === "object" && value !== null) {
    for (const [member, item] of Object.entries(value)) {
      appendField(form, `${name}[${member}]`, item)
    }
  } else form.append(name, String(value))
}

const extensions: Readonly<Record<string, string>> = {
  mpeg: "mp3",
  "x-wav": "wav",
  wave: "wav",
  mp4: "m4a",
  "x-m4a": "m4a"
}

/** The file extension, by which vendors recognize the format. */
const extensionOf = (mediaType: string): string => {
  const [, subtype = "wav"] = mediaType.split("/")
  return Object.hasOwn(extensions, subtype) ? (extensions[subtype] ?? subtype) : subtype
}
