/** A fenced block of a Markdown document. */
export interface Block {
  /** The word after the fence, such as `sh`; empty if there is none. */
  readonly language: string
  /** The second word after the fence. In a sample it is the file name of the block. */
  readonly name: string | undefined
  readonly text: string
  /** The line number of the fence, counted from 1. */
  readonly line: number
}

/** The fenced blocks of a document, in order, including indented ones. */
export const blocksOf = (markdown: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let open: { info: string; indent: string; line: number; lines: Array<string> } | undefined
  for (const [index, line] of markdown.split("\n").entries()) {
    const fence = /^(\s*)```(.*)$/u.exec(line)
    if (open === undefined) {
      if (fence !== null) {
        open = { info: fence[2] ?? "", indent: fence[1] ?? "", line: index + 1, lines: [] }
      }
    } else if (fence === null) {
      open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line)
    } else {
      const [language = "", name] = open.info.trim().split(/\s+/u)
      blocks.push({ language, name, text: open.lines.join("\n"), line: open.line })
      open = undefined
    }
  }
  return blocks
}

/** How lists show a block: the words after its fence and its first line. */
export const labelOf = ({ language, name, text }: Block): string =>
  [language, name, text.split("\n", 1)[0]].filter((part) => part !== undefined).join(" ")

/** Whether the block is a drawing or text for display, which is not run. */
export const isDrawing = ({ language }: Block): boolean => language === "" || language === "mermaid"
