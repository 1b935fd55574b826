"""Portuguese words that the guards of `core.likeness` know. Data only; `lexicon.lexicon` says how it is written."""

STOP = """
dá fica ficam encontra será foi o a os as um uma uns umas de do da dos das no na nos nas ao aos à às em e ou mas se
que quê quem qual quais quando onde como por pelo pela para pra com sobre entre desde até eu tu ele ela nós eles elas
você vocês me te lhe lhes meu minha meus minhas teu tua seu sua seus suas nosso nossa é são era eram ser sou está
estão estar estou foi foram sido ter tenho tem têm há havia posso pode podem poder poderia devo deve devem quero quer
queria gostaria preciso fazer faço faz faça dar dê dizer diga explicar explica explique mostrar mostre ajudar ajude
ajuda olá oi obrigado obrigada favor saber possível maneira forma modo jeito melhor melhores bom boa este esta isto
esse essa isso pergunta coisa algo também muito mais aqui ir vai vou
"""

NEGATORS = """
exceto salvo não nunca jamais nenhum nenhuma nada ninguém sem nem
"""

NEGATIVES = """
ilegal: legal | impossível: possível | inválido: válido | inválida: válida | incorreto: correto | incorreta: correta |
inseguro: seguro | proibido: permitido | inativo: ativo | desconhecido: conhecido | incompatível: compatível | inútil:
útil
"""

FORMS = """
ativar ativo ativa ativado | desativar desativo desativa desativado | comprar compro compra | vender vendo venda |
abrir abro | fechar fecho | excluir excluo | adicionar adiciono
"""

OPPOSITES = """
abre abrem / fecha fecham | sobe sobem subir / cai caem desce descem descer | importação / exportação | primeiro
primeira / último última | pai / mãe | filho / filha | irmão / irmã | longo longa / curto curta | forte / fraco fraca
| rico rica / pobre | perto / longe | cheio cheia / vazio vazia | verão / inverno | dia / noite | amigo / inimigo |
conectar / desconectar | emprestar / pedir_emprestado | depositar / sacar | verdadeiro / falso | seguro segura /
perigoso perigosa | possível / impossível | ativar ativo ativa ligar habilitar / desativar desativo desativa desligar
desabilitar | permitido permitir / proibido proibir | comprar compro / vender vendo | abrir abro / fechar fecho |
antes / depois | mais / menos | grande grandes / pequeno pequena pequenos | maior / menor | alto alta / baixo baixa |
vantagem vantagens / desvantagem desvantagens | bom boa / mau ruim má | melhor / pior | novo nova / velho velha antigo
antiga | rápido rápida / lento lenta | adicionar acrescentar / excluir remover apagar | aumentar subir / reduzir
diminuir baixar | ganhar / perder | contra / favor | com / sem | máximo máxima / mínimo mínima | quente / frio |
esquerda / direita | enviar / baixar | importar / exportar | instalar / desinstalar | enviar / receber | bloquear /
desbloquear | homem homens / mulher mulheres | fácil / difícil | barato barata / caro cara | interior / exterior |
público / privado | sempre / nunca | dentro / fora | entrada / saída
"""

SYNONYMS = """
arquivo ficheiro | pasta diretório | computador pc | começar iniciar | fundar fundou fundada | celular telemóvel
telefone | carro automóvel | excluir apagar remover deletar | ativar ligar habilitar | desativar desligar desabilitar
| preço custo
"""

QUESTIONS = """
when: a_que_horas | why: qual_é_a_razão por_que_motivo | who: quem | when: quando | where: onde aonde | why: por_que
por_quê porque porquê | how: como | what: que quê o_que | which: qual quais | how_much: quanto quanta | how_many:
quantos quantas | how_long: quanto_tempo | how_often: com_que_frequência | how_old: quantos_anos
"""

QUANTIFIERS = """
all: todos todas cada todo toda | some: alguns algumas vários várias | only: só somente apenas | always: sempre |
sometimes: vezes | rarely: raramente | often: frequentemente | half: metade meio meia | average: média médio
"""

DEGREES = """
fast: mais_rápido mais_rápida | easy: mais_fácil mais_simples | cheap: mais_barato mais_barata | first: primeiro
primeira | last: último última
"""

TIMES = """
now: agora atualmente | today: hoje | yesterday: ontem | tomorrow: amanhã | morning: manhã | night: noite | evening:
tarde | noon: meio-dia | last: semana_passada mês_passado ano_passado | next: próxima_semana próximo_mês próximo_ano
"""

MONTHS = """
janeiro | fevereiro | março | abril | maio | junho | julho | agosto | setembro | outubro | novembro | dezembro
"""

WEEKDAYS = """
segunda_feira | terça_feira terça | quarta_feira | quinta_feira | sexta_feira | sábado | domingo
"""

NUMBERS = """
zero:0 dois:2 duas:2 três:3 quatro:4 cinco:5 seis:6 sete:7 oito:8 nove:9 dez:10 onze:11 doze:12 treze:13 catorze:14
quatorze:14 quinze:15 dezesseis:16 dezessete:17 dezoito:18 dezenove:19 vinte:20 trinta:30 quarenta:40 cinquenta:50
sessenta:60 setenta:70 oitenta:80 noventa:90 cem:x100 cento:x100 duzentos:200 trezentos:300 quinhentos:500 mil:x1000
milhão:x1000000 milhões:x1000000
"""

ORDINALS = "primeiro:1 primeira:1 segundo:2 terceiro:3 terceira:3 quarto:4 quinto:5"

ROLES = """
from: desde de do da | to: para a ao à até pra | with: com mediante | of: em no na para sobre durante por | and: e ou
"""

UNITS = """
s: segundos | min: minuto minutos | h: hora horas | day: dia dias | week: semana semanas | month: mês meses | year:
ano anos | g: grama gramas | kg: quilograma quilogramas quilo quilos | l: litro litros | m: metro metros | km:
quilômetro quilômetros quilómetro quilómetros | mi: milha milhas | lb: libra libras | eur: euro euros | usd: dólar
dólares | percent: por_cento porcento
"""

FORMATS = """
short: brevemente breve curto curta | long: longo longa | detailed: detalhe detalhadamente detalhada | one_sentence:
uma_frase | simple: termos_simples palavras_simples | formal: formal | informal: informal | table: tabela
"""
