/** Texts of calls. */
export const callTexts = {
  about: "Calls to models that are charged by token or by call. Receipts are kept for 30 days.",
  caption: "Calls, newest first",
  empty: "No calls yet",
  emptyDetail: "Calls through the vendors' native routes appear here when they end.",
  noMatch: "No calls match these filters",
  key: "Key",
  outcomes: { settled: "Charged", released: "Not charged", lost: "Lost" },
  lostHelp: "The gateway's process ended during the call. Nothing was charged.",
  chargedLate: "late: the hold was already released",
  answer: "HTTP status",
  begun: "Started",
  firstToken: "First token after",
  tokens: "Tokens in / out",
  cached: (count: string) => `${count} cached`,
  counted: "Estimated by the gateway because the vendor reported no usage.",
  id: "Call id",
  pricedAs: "Priced as",
  entries: "Ledger entries",
  tokenNames: {
    inputTokens: "Input tokens",
    cachedInputTokens: "Cached input tokens",
    cacheWriteTokens: "Cache write tokens",
    cacheWriteLongTokens: "Long cache write tokens",
    audioInputTokens: "Audio input tokens",
    outputTokens: "Output tokens",
    reasoningTokens: "Reasoning tokens",
    imageOutputTokens: "Image output tokens"
  }
}
