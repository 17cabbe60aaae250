#!/bin/sh
# board.sh BOARD [FOLDER]: builds the program for cm3, cm4, cm55 or rv32 with its files in FOLDER, build/board/BOARD
# without it, and runs it under QEMU. BOARD `host` is this machine with the code for a cm3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
board=${1:?"board.sh cm3|cm4|cm55|rv32|host [FOLDER]"}
folder=${2:-$root/build/board/$board}
attnc=${ATTNC:-$root/build/attnc}
target=$board
[ "$board" = host ] && target=cm3
bare="-std=c11 -O2 -ffreestanding -ffunction-sections -fdata-sections -Wall -Wextra -nostdlib -Wl,--gc-sections"
bare="$bare -T $here/link.ld $here/start.c"
arm="arm-none-eabi-gcc -mthumb $bare $here/cortex_m.c -Wl,--defsym=FLASH=0 -Wl,--defsym=RAM=0x20000000"
rv="riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 $bare $here/rv32.c"
qemu="-nographic -monitor none -serial none -icount shift=0 -chardev stdio,id=out"
qemu="$qemu -semihosting-config enable=on,target=native,chardev=out -kernel $folder/dates.elf"
case $board in
cm3) cc="$arm -mcpu=cortex-m3" run="qemu-system-arm -M mps2-an385 $qemu" ;;
cm4) cc="$arm -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard" run="qemu-system-arm -M mps2-an386 $qemu" ;;
cm55) cc="$arm -mcpu=cortex-m55 -mfloat-abi=hard -DBOARD_HZ=32000000u" run="qemu-system-arm -M mps3-an547 $qemu" ;;
rv32)
    cc="$rv -Wl,--defsym=FLASH=0x80000000 -Wl,--defsym=RAM=0x80100000"
    run="qemu-system-riscv32 -M virt -bios none $qemu"
    ;;
host) cc="cc -std=c11 -O2 $here/host.c" run=$folder/dates.elf ;;
*) echo "board.sh: no board $board" >&2 && exit 2 ;;
esac
mkdir -p "$folder"
"$attnc" compile "$here/../dates/dates.attn" -o "$folder" --target "$target" \
    --precision weights=int8,activations=int8,cache=int8 --weights "$here/../dates/dates.safetensors" --embed-weights ${OPTIONS:-} \
    ${BUDGET:+--budget "$BUDGET"}
$cc -I"$folder" -I"$here" "$here/main.c" "$folder/dates.c" -o "$folder/dates.elf" \
    $([ "$board" = host ] || echo -lgcc)
exec $run
