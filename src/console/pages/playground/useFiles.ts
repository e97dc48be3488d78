import { useRef, useState } from "preact/hooks"
import { playgroundTexts } from "../../texts/en/playground.ts"

/** An input for files, and an element on which they can be dropped. Its form cannot be submitted while files are read. */
export const useFiles = (onFiles: (files: ReadonlyArray<File>) => Promise<void>) => {
  const [isOver, setOver] = useState(false)
  const ref = useRef<HTMLInputElement>(null)
  const reading = useRef(0)
  const count = (change: number) => {
    reading.current += change
    ref.current?.setCustomValidity(reading.current > 0 ? playgroundTexts.media.reading : "")
  }
  const take = (files: Iterable<File>) => {
    count(1)
    void onFiles([...files]).finally(() => count(-1))
  }
  const handlers = {
    onDragOver: (event: DragEvent) => {
      event.preventDefault()
      setOver(true)
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault()
      setOver(false)
      take(event.dataTransfer?.files ?? [])
    }
  }
  const onChange = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
    take(currentTarget.files ?? [])
    // Allows choosing the same file again
    currentTarget.value = ""
  }
  return {
    isOver,
    handlers,
    input: { type: "file", class: "hidden", ref, onChange },
    take
  } as const
}
