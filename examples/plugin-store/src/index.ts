export * as FolderStore from "./FolderStore.ts"
