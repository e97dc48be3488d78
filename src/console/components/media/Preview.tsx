import { useEffect, useRef, useState } from "preact/hooks"
import { isShown, mediaPath } from "../../api/address.ts"
import type { Schemas } from "../../api/schema.ts"
import { Icon } from "../Icon.tsx"

type Of = Schemas["TaskListItem"]["preview"]

/** So far from the screen media are loaded already. */
const margin = "150px"

/**
 * Whether an element has been on the screen, or near. Browsers load a picture thousands of pixels before it is seen,
 * and videos at once; results are large, and a list has many.
 */
const useSeen = <E extends Element>() => {
  const ref = useRef<E>(null)
  const [isSeen, setSeen] = useState(false)
  useEffect(() => {
    const { current } = ref
    if (current === null || isSeen) return undefined
    const observer = new IntersectionObserver(
      (entries) => setSeen(entries.some((it) => it.isIntersecting)),
      { rootMargin: margin }
    )
    observer.observe(current)
    return () => observer.disconnect()
  }, [isSeen])
  return { ref, isSeen }
}

/**
 * The first result beside the title of its task; a video is an icon, so that a list loads none. Without a result its
 * place stays, so that titles begin in one line.
 */
export const Thumbnail = ({ of }: { readonly of: Of }) => {
  if (of === undefined || !isShown(of.url)) return <NoPicture />
  return of.kind === "videos" ? (
    <span class="thumbnail">
      <Icon name="play" />
    </span>
  ) : (
    <SmallPicture src={mediaPath(of.url)} />
  )
}

const NoPicture = () => <span class="thumbnail" />

const SmallPicture = ({ src }: { readonly src: string }) => {
  const [isGone, setGone] = useState(false)
  const { isSeen, ref } = useSeen<HTMLImageElement>()
  return isGone ? (
    <NoPicture />
  ) : (
    <img
      ref={ref}
      class="thumbnail"
      src={isSeen ? src : undefined}
      alt=""
      decoding="async"
      onError={() => setGone(true)}
    />
  )
}

/** The first result as large as its place; the task names it. */
export const PreviewMedia = ({ of }: { readonly of: NonNullable<Of> }) => {
  const { isSeen, ref } = useSeen<HTMLImageElement & HTMLVideoElement>()
  const src = isSeen ? mediaPath(of.url) : undefined
  return of.kind === "videos" ? (
    <video ref={ref} src={src} preload="metadata" muted />
  ) : (
    <img ref={ref} src={src} alt="" decoding="async" />
  )
}
