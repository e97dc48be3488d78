import { at } from "../domain/json/Json.ts"
import type { ParsedRequest } from "./Completion.ts"
import { hertz, mp3Of, samplesOf, secondsOf } from "./media/Sound.ts"
import { wavOf } from "./media/WavFile.ts"

/** The media type and the bytes of an audio response; `undefined` if the simulator does not support the format. */
export interface Sound {
  readonly mime: string
  readonly bytes: Buffer
}

const formats: Readonly<Record<string, (text: string) => Sound>> = {
  mp3: (text) => ({ mime: "audio/mpeg", bytes: mp3Of(text) }),
  wav: (text) => ({ mime: "audio/wav", bytes: wavOf(samplesOf(text), hertz) }),
  pcm: (text) => ({ mime: "audio/pcm", bytes: samplesOf(text) })
}

const textOf = (body: unknown): string => {
  const input = at(body, "input")
  return typeof input === "string" ? input : String(input ?? "")
}

/** docs/reference/vendors.md#openai-speech */
export const speechOf = (body: unknown): Sound | undefined => {
  const format = at(body, "response_format") ?? "mp3"
  return typeof format === "string" && Object.hasOwn(formats, format)
    ? formats[format]?.(textOf(body))
    : undefined
}

export const speechFormats = Object.keys(formats).join(", ")

const eventBytes = 16 * 1024
const tokensPerSecond = 1250 / 60

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

/** The same audio as events, the last of which contains the usage figures. */
export const speechEvents = (
  { body, completion }: ParsedRequest,
  { bytes }: Sound
): ReadonlyArray<string> => {
  const deltas = Array.from({ length: Math.ceil(bytes.length / eventBytes) }, (_, index) =>
    event({
      type: "speech.audio.delta",
      audio: bytes.subarray(index * eventBytes, (index + 1) * eventBytes).toString("base64")
    })
  )
  const output_tokens = Math.ceil(secondsOf(textOf(body)) * tokensPerSecond)
  const { inputTokens: input_tokens } = completion
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }
  return [...deltas, event({ type: "speech.audio.done", usage })]
}
