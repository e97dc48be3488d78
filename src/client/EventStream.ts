/** The `data` of each server-sent event; comments and other fields are skipped. `read` takes the next piece. */
export async function* eventsOf(
  read: () => Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ""
  let data: Array<string> = []
  for (;;) {
    const { done, value } = await read()
    rest += decoder.decode(value, { stream: !done })
    // A carriage return at the end may be half of a line's end
    const lines = rest.split(done ? /\r\n|\r|\n/u : /\r\n|\r(?!$)|\n/u)
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5))
      if (line !== "" || data.length === 0) continue
      yield data.join("\n")
      data = []
    }
    if (done) return
  }
}
