import { at } from "../domain/json/Json.ts"
import type { ParsedRequest } from "./Completion.ts"

/** How much of each document is read, so that a request cannot cost much. */
const charactersRead = 2000

const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .slice(0, charactersRead)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
  )

const textOf = (document: unknown): string => {
  const text = typeof document === "string" ? document : (at(document, "text") ?? document)
  return typeof text === "string" ? text : (JSON.stringify(text) ?? "")
}

/** The most documents of a request, which is also the vendors' maximum. */
export const documentsMax = 10_000

export const documentsOf = (body: unknown): ReadonlyArray<unknown> => {
  const documents = at(body, "documents")
  return Array.isArray(documents) ? documents : []
}

/** Sorts documents by the share of the query's words that they contain. */
const sorted = (body: unknown) => {
  const query = wordsOf(textOf(at(body, "query")))
  const topN = at(body, "top_n")
  const scored = documentsOf(body).map((document, index) => {
    const own = wordsOf(textOf(document))
    const shared = Array.from(query).filter((word) => own.has(word)).length
    return {
      index,
      relevance_score: Number((shared / Math.max(1, query.size)).toFixed(4)),
      document
    }
  })
  return scored
    .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, typeof topN === "number" && topN >= 1 ? topN : scored.length)
}

const documentsPerSearch = 100

/** docs/reference/vendors.md#sandbox */
export const cohereRerank = ({ body, completion }: ParsedRequest) => ({
  id: completion.seed.slice(0, 32),
  results: sorted(body).map(({ index, relevance_score }) => ({ index, relevance_score })),
  meta: {
    api_version: { version: "2" },
    billed_units: { search_units: Math.ceil(documentsOf(body).length / documentsPerSearch) }
  }
})

/** Jina returns the documents unless the request turns that off. */
export const jinaRerank = ({ body, completion }: ParsedRequest) => {
  const isBare = at(body, "return_documents") === false
  return {
    model: completion.model,
    object: "list",
    usage: { total_tokens: completion.inputTokens },
    results: sorted(body).map(({ document, index, relevance_score }) => ({
      index,
      relevance_score,
      document: isBare ? undefined : { text: textOf(document) }
    }))
  }
}
