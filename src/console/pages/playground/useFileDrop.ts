import { useState } from "preact/hooks"

/** An element on which files can be dropped: its handlers, and whether files are being dragged over it. */
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
