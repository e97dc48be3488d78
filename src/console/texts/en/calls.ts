/** Texts of calls. */
export const callTexts = {
  title: "Calls",
  about: "Calls of models that are paid by tokens or by the call. Receipts are kept for 30 days.",
  caption: "Calls, newest first",
  reload: "Read again",
  empty: "No call yet",
  emptyDetail: "Calls by the vendors' own routes appear here when they end.",
  noMatch: "No call matches these filters",
  key: "Key",
  outcomes: { settled: "Charged", released: "Free", lost: "Lost" },
  chargedLate: "late: the hold had been released",
  answer: "HTTP status",
  begun: "Begun",
  firstToken: "First token after",
  firstIn: (duration: string) => `first token ${duration}`,
  tokens: "Tokens in / out",
  cached: (count: string) => `${count} cached`,
  counted: "Estimated by the gateway: the vendor reported no usage.",
  id: "Call id",
  route: "Route",
  pricedAs: "Priced as",
  entries: "Its entries in the ledger",
  tokenNames: {
    inputTokens: "Input tokens",
    cachedInputTokens: "of these cached",
    cacheWriteTokens: "written to the cache",
    cacheWriteLongTokens: "written for long",
    audioInputTokens: "of sound",
    outputTokens: "Output tokens",
    reasoningTokens: "of these reasoning",
    imageOutputTokens: "of pictures"
  }
}
