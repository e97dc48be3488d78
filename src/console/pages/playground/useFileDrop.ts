import { useState } from "preact/hooks"

/** An element on which files are dropped: whether they are above it, and its handlers. */
export const useFileDrop = (onFiles: (files: ReadonlyArray<File>) => void) => {
  const [isOver, setOver] = useState(false)
  const handlers = {
    onDragOver: (event: DragEvent) => {
      event.preventDefault()
      setOver(true)
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault()
      setOver(false)
      onFiles([...(event.dataTransfer?.files ?? [])])
    }
  }
  return { isOver, handlers }
}
