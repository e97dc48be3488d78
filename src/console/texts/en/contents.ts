/** Texts of what calls sent and received. They load with the pages of calls. */
export const contentTexts = {
  request: "Request",
  response: "Response",
  noRequest: "A form with a file is not kept.",
  noResponse: "Nothing was relayed.",
  truncated: (bytes: string) => `Cut off: the whole body has ${bytes} bytes.`,
  title: "Request and response",
  on: "Keep requests and responses",
  off: "Stop keeping requests",
  onTitle: "Keep requests and responses?",
  onDetail:
    "The next calls are kept, the newest 500, each side up to 64 KiB. They are encrypted, deleted with their retention, and part of your export. Media and credentials are replaced; operators can read what is kept, and each read is in the audit log.",
  offTitle: "Stop keeping requests and responses?",
  offDetail: "What was kept is deleted now.",
  missing: "The request and response of this call were not kept.",
  isOff: "Requests and responses are not kept. Switch it on to see those of the next calls here.",
  noCode: "There is no code, because the request was cut off or is not JSON."
}
