import type { Recorded } from "../recordedVendors.ts"
import { argumentsFor, at, formed, listAt, words } from "./body.ts"

const usageMetadata = {
  promptTokenCount: 20,
  candidatesTokenCount: 6,
  thoughtsTokenCount: 4,
  totalTokenCount: 30,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 20 }]
}

const toolOf = (body: unknown) => {
  const last = listAt(body, "contents").at(-1)
  const isOver = listAt(last, "parts").some((it) => at(it, "functionResponse") !== undefined)
  const [declaration] = listAt(listAt(body, "tools")[0], "functionDeclarations")
  return isOver ? undefined : at(declaration, "name")
}

const piecesOf = (body: unknown): ReadonlyArray<string> =>
  at(body, "generationConfig", "responseMimeType") === "application/json"
    ? [JSON.stringify(formed).slice(0, 9), JSON.stringify(formed).slice(9)]
    : words

const chunk = (model: string, part: object, finish: object) => ({
  candidates: [{ content: { parts: [part], role: "model" }, ...finish, index: 0 }],
  usageMetadata,
  modelVersion: model,
  responseId: "resp-rec1"
})

const generate = (model: string, verb: string, body: unknown): Recorded => {
  const name = toolOf(body)
  const finish = { finishReason: "STOP" }
  const call = {
    functionCall: { name, args: argumentsFor(listAt(body, "tools")[0]) },
    thoughtSignature: "c2ln"
  }
  if (verb === "generateContent") {
    const part = name === undefined ? { text: piecesOf(body).join("") } : call
    return { json: chunk(model, part, finish) }
  }
  const parts = name === undefined ? piecesOf(body).map((text) => ({ text })) : [call]
  return {
    events: parts.map((part, index) => {
      const end = index === parts.length - 1 ? finish : {}
      return `data: ${JSON.stringify(chunk(model, part, end))}\r\n\r\n`
    })
  }
}

const values = [0.25, -0.5, 0.75]

export const record = (path: string, body: unknown): Recorded => {
  const [, model = "", verb = ""] = /^\/v1(?:beta)?\/models\/([^:]+):(\w+)$/u.exec(path) ?? []
  switch (verb) {
    case "generateContent":
    case "streamGenerateContent":
      return generate(model, verb, body)
    case "countTokens":
      return {
        json: { totalTokens: 20, promptTokensDetails: [{ modality: "TEXT", tokenCount: 20 }] }
      }
    case "embedContent":
      return { json: { embedding: { values } } }
    case "batchEmbedContents":
      return { json: { embeddings: listAt(body, "requests").map(() => ({ values })) } }
    default:
      return undefined
  }
}
