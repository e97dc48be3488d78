import { SoundLength } from "../catalog/media/SoundLength.ts"
import { boundaryOf } from "../domain/forms/FormHead.ts"
import { FormReader } from "../domain/forms/FormReader.ts"
import type { SentUpload, UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"

/** The settings of a form, and the duration of its file. */
export interface Heard {
  readonly model: string
  readonly format: string
  readonly isStream: boolean
  readonly hasFile: boolean
  /** Whether the times of words are requested. */
  readonly hasWords: boolean
  readonly seconds: number
}

/** Used if a format does not show its duration. */
const usualBytesPerSecond = 4000

const headerOf = ({ headers }: UpstreamRequest, name: string): string =>
  headers[headers.findIndex((it, index) => index % 2 === 0 && it === name) + 1] ?? ""

/** Reads a form to its end. Calls back with `undefined` if it ends too early. */
export const hear = (
  request: UpstreamRequest,
  upload: SentUpload,
  done: (heard: Heard | undefined) => void
): (() => void) => {
  const fields = new Map<string, string>()
  const sound = new SoundLength()
  let fileBytes = 0
  let hasWords = false
  const reader = new FormReader(boundaryOf(headerOf(request, "content-type")) ?? "", {
    onField: (name, text) => {
      fields.set(name, text)
      hasWords ||= name === "timestamp_granularities[]" && text === "word"
      return undefined
    },
    onFile: () => undefined,
    onFileBytes: (bytes) => {
      fileBytes += bytes.length
      sound.push(bytes)
    }
  })
  const body = upload.open()
  body.on("data", (chunk: Buffer) => reader.push(chunk))
  body.on("error", () => done(undefined))
  body.on("end", () =>
    done({
      model: fields.get("model") ?? "",
      format: fields.get("response_format") ?? "json",
      isStream: fields.get("stream") === "true",
      hasFile: fileBytes > 0,
      hasWords,
      seconds: sound.seconds ?? fileBytes / usualBytesPerSecond
    })
  )
  return () => body.destroy()
}

/** The tokens that a model charged by tokens counts. */
const tokensPerSecond = 10

const words =
  "This transcript comes from the built-in simulator: set a vendor key to reach the real model.".split(
    /(?= )/u
  )
export const transcript = words.join("")

const usageOf = ({ model, seconds }: Heard) => {
  if (!model.startsWith("gpt-4o")) return { type: "duration", seconds: Math.ceil(seconds) }
  const audio_tokens = Math.ceil(seconds * tokensPerSecond)
  return {
    type: "tokens",
    input_tokens: audio_tokens,
    input_token_details: { audio_tokens, text_tokens: 0 },
    output_tokens: words.length,
    total_tokens: audio_tokens + words.length
  }
}

/** Formats a time as `00:00:01.500`. SRT uses a comma. */
const clock = (seconds: number, mark: "." | ","): string =>
  new Date(Math.round(seconds * 1000)).toISOString().slice(11, 23).replace(".", mark)

const roundedSeconds = ({ seconds }: Heard): number => Number(seconds.toFixed(2))

/** The words, each as long as the others. */
const timedWords = (heard: Heard) => {
  const timeOf = (index: number) =>
    Number(((roundedSeconds(heard) * index) / words.length).toFixed(2))
  return words.map((word, index) => ({
    word: word.trim(),
    start: timeOf(index),
    end: timeOf(index + 1)
  }))
}

const isDiarized = ({ format, model }: Heard): boolean =>
  format === "diarized_json" && model.includes("diarize")

/** The only segment of a transcript with speakers, which is an event of a stream too. */
const spoken = (heard: Heard) => ({
  type: "transcript.text.segment",
  id: "seg_0",
  start: 0,
  end: roundedSeconds(heard),
  speaker: "A",
  text: transcript
})

/**
 * The body and its media type; `undefined` if the model does not return this format.
 * docs/reference/vendors.md#openai-transcriptions
 */
export const transcription = (
  heard: Heard,
  isTranslation: boolean
): { readonly mime: string; readonly text: string } | undefined => {
  const { format, seconds } = heard
  const json = (value: object) => ({ mime: "application/json", text: JSON.stringify(value) })
  const plain = (text: string) => ({ mime: "text/plain; charset=utf-8", text })
  switch (format) {
    case "json":
      return json({ text: transcript, usage: usageOf(heard) })
    case "verbose_json":
      return json({
        task: isTranslation ? "translate" : "transcribe",
        language: "english",
        duration: roundedSeconds(heard),
        text: transcript,
        ...(heard.hasWords ? { words: timedWords(heard) } : {}),
        segments: [
          {
            id: 0,
            seek: 0,
            start: 0,
            end: roundedSeconds(heard),
            text: transcript,
            tokens: words.map((_, index) => 50_364 + index),
            temperature: 0,
            avg_logprob: -0.1,
            compression_ratio: 1,
            no_speech_prob: 0
          }
        ],
        usage: usageOf(heard)
      })
    case "diarized_json":
      return isDiarized(heard)
        ? json({
            task: "transcribe",
            duration: roundedSeconds(heard),
            text: transcript,
            segments: [spoken(heard)],
            usage: usageOf(heard)
          })
        : undefined
    case "text":
      return plain(`${transcript}\n`)
    case "srt":
      return plain(`1\n${clock(0, ",")} --> ${clock(seconds, ",")}\n${transcript}\n\n`)
    case "vtt":
      return plain(`WEBVTT\n\n${clock(0, ".")} --> ${clock(seconds, ".")}\n${transcript}\n\n`)
    default:
      return undefined
  }
}

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

/** The same as events, the last of which contains the usage figures. */
export const transcriptionEvents = (heard: Heard): ReadonlyArray<string> => [
  ...words.map((delta) => event({ type: "transcript.text.delta", delta })),
  ...(isDiarized(heard) ? [event(spoken(heard))] : []),
  event({ type: "transcript.text.done", text: transcript, usage: usageOf(heard) })
]
