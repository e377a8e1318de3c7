import { afterAll } from 'vitest'
import { closeAll } from './cleanup.js'

afterAll(closeAll)
